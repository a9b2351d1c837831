#pragma once
#include <sys/types.h>

#include "system.hpp"

namespace meshpost::launch {

/// A process that waits for the launcher's death, because the launcher can't act after SIGKILL. It
/// then kills the process groups that it was told of, and removes their files in shared memory. The
/// kernel ends the launcher's own children (PR_SET_PDEATHSIG), but not their descendants.
class Guard {
 public:
  Guard();
  ~Guard();
  Guard(Guard const&) = delete;
  Guard& operator=(Guard const&) = delete;

  /// From now on the group of process `leader` ends with the launcher.
  void watch(pid_t leader);
  pid_t pid() const { return pid_; }

 private:
  Fd news_;
  pid_t pid_ = -1;
};

}  // namespace meshpost::launch
