#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

// Processes of a job that fork: inherited objects belong to the parent.

namespace meshpost::test {

/// Ends a forked child as a return from main does.
[[noreturn]] inline void return_from_main() {
#if defined(__SANITIZE_ADDRESS__)
  std::_Exit(0);  // the leak check would miss objects held by threads that only the parent has
#else
  std::exit(0);
#endif
}

/// The status with which a forked child ended.
inline int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace meshpost::test
