#pragma once
#include <sys/signalfd.h>

#include <optional>

#include "system.hpp"

namespace meshpost::launch {

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
