#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "system.hpp"

namespace meshpost::launch {

/// The standard input of a process.
enum class Input { inherited, nothing, pipe };

struct Spawn {
  std::vector<std::string> command, environment;
  Input input = Input::nothing;
  int listener = -1;  ///< descriptor that the program keeps; -1: none
  rlimit files{};     ///< its limit of open files
};

struct Child {
  pid_t pid = 0;
  Fd output, errors;  ///< its standard output and error; non-blocking
  Fd input;           ///< its standard input, with Input::pipe; non-blocking
};

/// Nothing was started; `status` is the status that shells return for it.
class NotStarted : public Error {
 public:
  NotStarted(Error const& error, int status) : Error(error), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// Starts a program as leader of its own process group, with default signals. It is killed when
/// this process dies. Returns when it runs.
/// \throws NotStarted when it does not: 126 it may not be run, 127 there is none, 1 anything else.
Child start(Spawn const& spawn);

}  // namespace meshpost::launch
