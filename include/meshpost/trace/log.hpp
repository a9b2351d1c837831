#pragma once
#include <string>

#include "meshpost/trace/record.hpp"

namespace meshpost {

/// The line that a record stands for. A text that does not fit its arguments comes as it is, with
/// them behind it: a log must not be lost to a typo.
std::string format_log(LogRecord const& record);

/// Empties a ring, in order; one thread at a time.
class LogReader {
 public:
  /// Goes on behind what was read before: the slots that runs use go round and on.
  explicit LogReader(LogRing ring) : ring_(ring), next_(ring.tail ? *ring.tail : 0) {}
  /// Sends all whole records to the event sink; returns how many. \throws what the sink threw
  /// first, when the ring is empty
  u32 drain();

 private:
  LogRing ring_;
  u32 next_;
};

}  // namespace meshpost
