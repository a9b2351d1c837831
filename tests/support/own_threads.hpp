#pragma once
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace meshpost::test {

/// The kernel's numbers of this process's threads.
inline std::set<std::string> own_threads() {
  std::set<std::string> found;
  for (auto const& one : std::filesystem::directory_iterator("/proc/self/task"))
    found.insert(one.path().filename().string());
  return found;
}

/// Number of times that these have gone to sleep so far. A thread that polls with naps sleeps some
/// thousand times a second.
inline unsigned long times_asleep(std::set<std::string> const& threads) {
  unsigned long times = 0;
  for (auto const& thread : threads) {
    std::ifstream status("/proc/self/task/" + thread + "/status");
    for (std::string word; status >> word;)
      if (unsigned long count = 0; word == "voluntary_ctxt_switches:" && status >> count)
        times += count;
  }
  return times;
}

/// The same in 200 ms, when runs have ended a while ago. A World's own thread looks for new runs
/// for 100 ms with naps of 50 us, which would be some 2000.
inline unsigned long naps_between_runs(std::set<std::string> const& threads) {
  using namespace std::chrono_literals;
  std::this_thread::sleep_for(250ms);
  auto const before = times_asleep(threads);
  std::this_thread::sleep_for(200ms);
  return times_asleep(threads) - before;
}

/// Time of a processor that the calling thread has had.
inline std::chrono::nanoseconds own_processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace meshpost::test
