#include "measure.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "meshpost/base/error.hpp"

namespace pingpong {

using namespace meshpost;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Between two looks. Threads of a machine with fewer cores than devices must let others go on.
void rest(u32 looks) {
  if (looks > 200) std::this_thread::yield();
}

// Thrown by hosts that wait when another one has failed.
struct OtherFailed : std::exception {};

}  // namespace

std::string name(Mode mode) {
  return mode == Mode::host ? "host" : mode == Mode::stream ? "stream" : "kernel";
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto const seconds = [](timeval const& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Times measure(u32 repetitions, u32 turns, std::function<Took()> const& run) {
  run();
  Times times;
  std::vector<double> all;
  for (u32 i = 0; i < repetitions; ++i) {
    auto const took = run();
    all.push_back(took.seconds / turns);
    times.cpu += took.cpu / turns / repetitions;
    times.queued += took.queued / turns / repetitions;
  }
  std::ranges::sort(all);
  auto const at = [&](u32 quarter) { return all[(all.size() - 1) * quarter / 4]; };
  times.least = all.front(), times.lower = at(1), times.median = at(2), times.upper = at(3);
  return times;
}

Took Hosts::run(std::function<void(u32)> const& work) {
  ready_ = 0, failed_ = false, first_ = nullptr;
  std::ranges::fill(queued_, 0.0);
  team_.run([&](u32 host) {
    ++ready_;
    if (host == 0) {  // reads the clocks when all are there
      for (u32 looks = 0; ready_ != team_.size(); ++looks) rest(looks);
      begin_ = now(), cpu_ = cpu_seconds();
      ++ready_;
    } else {
      for (u32 looks = 0; ready_ != team_.size() + 1; ++looks) rest(looks);
    }
    try {
      work(host);
    } catch (OtherFailed const&) {
    } catch (...) {
      fail();
    }
  });
  double const end = now();
  if (first_) std::rethrow_exception(first_);
  return {end - begin_, cpu_seconds() - cpu_, *std::ranges::max_element(queued_)};
}

void Hosts::fail() {
  std::scoped_lock const lock(mutex_);
  if (!first_) first_ = std::current_exception();
  failed_ = true;
}

void Hosts::await(Flag const& flag, u32 value) const {
  for (u32 looks = 0; static_cast<i32>(flag.value() - value) < 0; ++looks) {
    if (failed_) throw OtherFailed();
    rest(looks);
  }
}

void Hosts::all_queued(u32 host) { queued_[host] = now() - begin_; }

}  // namespace pingpong
