#include "meshpost/pipeline/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "meshpost/base/events.hpp"
#include "pipeline/failure.hpp"

namespace meshpost {
namespace {

thread_local void const* inside = nullptr;  // the group whose function this thread runs

void refuse_inside(void const* group, char const* what) {
  if (inside == group)
    throw Error(Kind::misuse, what, "a function of the group called it",
                "call it from the thread that made the group");
}

}  // namespace

// Locking: `mutex` guards everything below it. Threads run functions without holding it. `changed`
// is notified after every change that someone may wait for: a step queued, a step done, the end.
struct DeviceGroup::State {
  explicit State(Work undo) : deinit(std::move(undo)) {}

  struct Thread {
    Member member;
    std::deque<std::shared_ptr<Work const>> queue;
    u64 done = 0;  // steps, in all; dropped ones count
    std::thread thread;
  };

  void run(Thread& self) {
    inside = this;
    bool started = false;
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return ending || !self.queue.empty(); });
      if (self.queue.empty()) break;
      auto const work = std::move(self.queue.front());
      self.queue.pop_front();
      if (self.done <= failed) {
        lock.unlock();
        bool const ok = call(*work, self.member);
        lock.lock();
        started = started || ok;  // step 0 is init
        if (!ok) failed = std::min(failed, self.done);
      }
      ++self.done;
      changed.notify_all();
    }
    lock.unlock();
    if (started && deinit) call(deinit, self.member);
  }

  bool call(Work const& work, Member const& member) {
    try {
      if (work) work(member);
      return true;
    } catch (...) {
      failure.note(member.device->name());
      return false;
    }
  }

  // Queues a step for all and waits until `members` are through with it, or have dropped it.
  void step(Work work, std::vector<u32> const& members) {
    auto const shared = std::make_shared<Work const>(std::move(work));
    std::unique_lock lock(mutex);
    if (ending)
      throw Error(Kind::misuse, "step a device group", "it has ended", "make another group");
    failure.rethrow_if_any();
    u64 const target = ++queued;
    for (auto& one : threads) one.queue.push_back(shared);
    changed.notify_all();
    changed.wait(lock, [&] {
      return std::all_of(members.begin(), members.end(),
                         [&](u32 i) { return threads[i].done >= target; });
    });
    failure.rethrow_if_any();
  }

  void end() {
    {
      std::scoped_lock const lock(mutex);
      ending = true;
    }
    changed.notify_all();
    // Several callers may end it at once: one joins, the others wait for that.
    std::scoped_lock const lock(joining);
    for (auto& one : threads)
      if (one.thread.joinable()) one.thread.join();
  }

  std::vector<u32> everyone() const {
    std::vector<u32> all(threads.size());
    for (u32 i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }

  Work deinit;
  pipelining::Failure failure;
  std::mutex mutex, joining;
  std::condition_variable changed;
  std::deque<Thread> threads;        // never resized while threads run
  u64 queued = 0, failed = ~u64{0};  // steps queued; the first that failed: later ones are dropped
  bool ending = false, reported = false;
};

DeviceGroup::DeviceGroup(std::vector<std::shared_ptr<Device>> devices, Work init, Work deinit)
    : state_(std::make_unique<State>(std::move(deinit))) {
  if (devices.empty() || std::count(devices.begin(), devices.end(), nullptr) != 0)
    throw Error(Kind::bad_argument, "make a device group",
                devices.empty() ? "there are no devices" : "a device is null",
                "open some with open_devices()");
  auto const count = static_cast<u32>(devices.size());
  for (u32 i = 0; i < count; ++i) {
    state_->threads.emplace_back();
    state_->threads.back().member = {devices[i], i, count};
  }
  try {
    for (auto& one : state_->threads)
      one.thread = std::thread([state = state_.get(), &one] { state->run(one); });
    state_->step(std::move(init), state_->everyone());
  } catch (...) {
    state_->end();
    throw;
  }
}

DeviceGroup::~DeviceGroup() {
  try {
    finalize();
  } catch (std::exception const& error) {
    event_sink()->warning(fmt::format("a device group ended with an error: {}", error.what()));
  }
}

u32 DeviceGroup::size() const { return static_cast<u32>(state_->threads.size()); }

void DeviceGroup::step_all(Work process) { step_all(std::move(process), state_->everyone()); }

void DeviceGroup::step_all(Work process, std::vector<u32> const& members) {
  refuse_inside(state_.get(), "step a device group");
  for (u32 const member : members)
    if (member >= size())
      throw Error(Kind::bad_argument, "step a device group",
                  fmt::format("wait for member {} of {}", member, size()), "members count from 0");
  try {
    state_->step(std::move(process), members);
  } catch (...) {
    std::scoped_lock const lock(state_->mutex);
    state_->reported = state_->failure.any();
    throw;
  }
}

void DeviceGroup::finalize() {
  refuse_inside(state_.get(), "finalize a device group");
  state_->end();
  {
    std::scoped_lock const lock(state_->mutex);
    if (std::exchange(state_->reported, true)) return;
  }
  state_->failure.rethrow_if_any();
}

}  // namespace meshpost
