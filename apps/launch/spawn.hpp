#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "system.hpp"

namespace meshpost::launch {

/// What a process reads as standard input.
enum class Input { inherited, nothing, pipe };

struct Spawn {
  std::vector<std::string> command, environment;
  Input input = Input::nothing;
  int listener = -1;  ///< descriptor that the program keeps; -1: none
  rlimit files{};     ///< its limit of open files
};

struct Child {
  pid_t pid = 0;
  Fd output, errors;  ///< what it prints; reading them never waits
  Fd input;           ///< what it reads, where Input::pipe; writing never waits
};

/// Nothing was started; `status` is what shells return for it.
class NotStarted : public Error {
 public:
  NotStarted(Error const& error, int status) : Error(error), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// Starts a program as leader of its own process group, with default signals, that is killed when
/// this process dies. Returns once it runs.
/// \throws NotStarted when it does not: 126 it may not be run, 127 there is none, 1 anything else.
Child start(Spawn const& spawn);

}  // namespace meshpost::launch
