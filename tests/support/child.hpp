#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "support/errors.hpp"

namespace meshpost::test {

/// Runs `work` in a forked child and returns its exit status. 100: an Error of kind misuse that
/// names fork; 3: it took longer than a minute.
template <class Work>
int status_in_child(Work&& work) {
  pid_t const child = fork();
  if (child == 0) {
    alarm(60);  // ends it: a child that hangs should fail the test, not outlive it
    int status = 1;
    try {
      work();
      status = 0;
    } catch (Error const& error) {
      status = says(error, Kind::misuse, {"forked", "after the fork"}) ? 100 : 2;
    }
    _Exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

}  // namespace meshpost::test
