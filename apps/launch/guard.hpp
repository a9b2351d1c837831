#pragma once
#include <sys/types.h>

#include "system.hpp"

namespace meshpost::launch {

/// A process that waits for the launcher's death, of which SIGKILL leaves no other trace, and then
/// kills the process groups that it was told of, and removes what they leave in shared memory. The
/// kernel ends the launcher's own children (PR_SET_PDEATHSIG), but not what those have started.
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
