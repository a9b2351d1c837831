#pragma once
#include <string>

#include "meshpost/trace/record.hpp"

namespace meshpost {

/// The text of a record's line. If a text does not fit its arguments, they are appended to it
/// unformatted: a typo must not lose a log line.
std::string format_log(LogRecord const& record);

/// Empties a ring, in order; one thread at a time.
class LogReader {
 public:
  /// Continues behind what was read before: runs use the slots of the ring round and round.
  explicit LogReader(LogRing ring) : ring_(ring), next_(ring.tail ? *ring.tail : 0) {}
  /// Sends all whole records to the event sink; returns how many. \throws the sink's first
  /// exception, when the ring is empty
  u32 drain();

 private:
  LogRing ring_;
  u32 next_;
};

}  // namespace meshpost
