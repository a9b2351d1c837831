#pragma once
// Files in shared memory whose process is gone.
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "meshpost/base/descriptor.hpp"

namespace meshpost::test {

/// True if the file is gone. The process that removes it has a lock, so all others leave it to that
/// one, which may be of another test. Then this waits.
inline bool is_removed(std::string const& path) {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    Descriptor const file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return !std::filesystem::exists(path);
    if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return !std::filesystem::exists(path);
    if (errno != EWOULDBLOCK) return false;
  }
}

}  // namespace meshpost::test
