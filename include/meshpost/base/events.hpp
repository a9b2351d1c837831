#pragma once
#include <memory>
#include <string_view>

namespace meshpost {

/// Receives warnings and log lines of the library. Replace it to send them elsewhere.
///
/// Called by: any thread of the library, also several at once; must not call back into a World.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Something that the user should know and can change: a slow path, unconsumed notifications. If
  /// this throws, the warning goes to the console.
  virtual void warning(std::string_view text) = 0;
  /// A line that a rank logged, while its kernel runs. `rank` counts in the world. If this throws,
  /// the exception ends the run.
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
