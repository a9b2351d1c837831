#pragma once
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "meshpost/base/error.hpp"

// What the launcher takes from the operating system: descriptors that close themselves, errors,
// limits, signals.

namespace meshpost::launch {

using Fd = Descriptor;

/// The error that errno tells of, behind a call of the system that returned -1.
inline Error system_error(std::string operation, std::string remedy) {
  return {Kind::bad_environment, std::move(operation), std::strerror(errno), std::move(remedy)};
}

/// Each process takes two descriptors here or three. Returns the limit as it was.
rlimit raise_file_limit();

/// Makes sure that 0, 1 and 2 are open, so that no pipe or socket gets these numbers.
void open_standard_streams();

/// The character that /proc/PID/stat has for it (proc(5)), such as 'T': stopped by a signal. 0:
/// there is none.
char state_of(pid_t process);

/// The signals of this process, to be read one by one instead of interrupting it.
class Signals {
 public:
  Signals();
  int fd() const { return fd_.get(); }
  /// The next one, if there is one.
  std::optional<signalfd_siginfo> next();

 private:
  Fd fd_;
};

}  // namespace meshpost::launch
