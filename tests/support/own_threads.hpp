#pragma once
#include <chrono>
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

/// True if these go to sleep less than `naps` times in 200 ms, where naps of 50 us make some 2000.
/// A World's own thread looks for new runs for 100 ms. In jobs, a question of another process wakes
/// a thread for 40 naps: hence several tries.
inline bool become_calm(std::set<std::string> const& threads, unsigned long naps, int tries = 1) {
  using namespace std::chrono_literals;
  for (; tries > 0; --tries) {
    std::this_thread::sleep_for(250ms);
    auto const before = times_asleep(threads);
    std::this_thread::sleep_for(200ms);
    if (times_asleep(threads) - before < naps) return true;
  }
  return false;
}

}  // namespace meshpost::test
