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

// The launcher's use of the operating system: descriptors that close themselves, errors, limits,
// signals.

namespace meshpost::launch {

using Fd = Descriptor;

/// The error of errno after a system call that returned -1.
inline Error system_error(std::string operation, std::string remedy) {
  return {Kind::bad_environment, std::move(operation), std::strerror(errno), std::move(remedy)};
}

/// Raises the limit: each process takes two or three descriptors here. Returns the previous limit.
rlimit raise_file_limit();

/// Makes sure that 0, 1 and 2 are open, so that no pipe or socket gets these numbers.
void open_standard_streams();

/// Its state character in /proc/PID/stat (proc(5)), such as 'T': stopped by a signal. 0: no such
/// process.
char state_of(pid_t process);

/// The signals of this process. They are read one by one and do not interrupt it.
class Signals {
 public:
  Signals();
  int fd() const { return fd_.get(); }
  /// The next signal, if there is one.
  std::optional<signalfd_siginfo> next();

 private:
  Fd fd_;
};

}  // namespace meshpost::launch
