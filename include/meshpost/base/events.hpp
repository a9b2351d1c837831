#pragma once
#include <memory>
#include <string_view>

namespace meshpost {

/// Where the library says what is neither a result nor an error. Replace it to send that elsewhere.
///
/// Called by: any thread of the library, also several at once; must not call back into a World.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Something the user should know and can mend: a slow path, notifications nobody consumed. If
  /// it throws, the warning goes to the console.
  virtual void warning(std::string_view text) = 0;
  /// A line that a rank logged, while its kernel runs. `rank` counts in the world. What it throws
  /// ends the run.
  virtual void log(unsigned rank, std::string_view text) = 0;
};

/// Warnings to standard error, logs to standard output, a line each.
std::shared_ptr<EventSink> console();

/// The sink in use. Thread-safe.
std::shared_ptr<EventSink> event_sink();

/// Puts `sink` in the place of the one in use and returns that; null means the console.
/// Thread-safe.
std::shared_ptr<EventSink> set_event_sink(std::shared_ptr<EventSink> sink);

/// A warning to the sink in use. If that throws, the warning goes to the console.
void warn(std::string_view text);

}  // namespace meshpost
