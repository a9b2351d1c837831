#pragma once
// Files in shared memory whose process is gone.
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

namespace meshpost::test {

/// True if the file is gone, or goes soon. The process that removes it has a lock, so all others
/// leave it to that one, which may be of another test.
inline bool is_removed(std::string const& file) {
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::filesystem::exists(file)) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace meshpost::test
