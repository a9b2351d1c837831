#pragma once
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

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

}  // namespace meshpost::test
