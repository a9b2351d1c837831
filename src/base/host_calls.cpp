#include "base/host_calls.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace meshpost {
namespace {

struct HostObservers {
  std::shared_mutex mutex;
  std::vector<std::shared_ptr<HostObserver>> all;
};

// Never destroyed: calls may come after main.
HostObservers& observers_of_host() {
  static auto* const one = new HostObservers;
  return *one;
}

thread_local u32 host_call_depth = 0;

}  // namespace

u64 host_clock_ns() {
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::steady_clock::now().time_since_epoch())
                              .count());
}

void add_host_observer(std::shared_ptr<HostObserver> const& observer) {
  std::unique_lock const lock(observers_of_host().mutex);
  observers_of_host().all.push_back(observer);
  host_observers.store(static_cast<u32>(observers_of_host().all.size()));
}

void remove_host_observer(std::shared_ptr<HostObserver> const& observer) {
  std::unique_lock const lock(observers_of_host().mutex);
  std::erase(observers_of_host().all, observer);
  host_observers.store(static_cast<u32>(observers_of_host().all.size()));
}

void tell_host_observers(HostCallRecord const& call) noexcept {
  std::shared_lock const lock(observers_of_host().mutex);
  for (auto const& observer : observers_of_host().all) try {
      observer->called(call);
    } catch (std::bad_alloc const&) {  // the program itself goes on
      continue;
    }
}

HidesHostCalls::HidesHostCalls() { ++host_call_depth; }
HidesHostCalls::~HidesHostCalls() { --host_call_depth; }

void HostCall::begin() {
  observed_ = true;
  if (++host_call_depth == 1) begin_ = host_clock_ns();
}

void HostCall::end() noexcept {
  --host_call_depth;
  if (begin_ == 0) return;
  u64 const end = host_clock_ns();
  try {
    tell_host_observers({kind_, operation_, std::move(subject_), where_, begin_, end});
  } catch (std::bad_alloc const&) {  // as there
    return;
  }
}

}  // namespace meshpost
