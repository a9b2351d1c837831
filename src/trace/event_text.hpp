#pragma once
#include <string>
#include <string_view>

#include "meshpost/base/types.hpp"

namespace meshpost::trace {

/// A row of a timeline: a thread of a process, in the words of the format.
struct TextRow {
  u64 process = 0, thread = 0;
};

/// Events in the trace event format, written as text one after the other. An event takes a hundred
/// bytes; a tree of JSON values would take 2.5 KB. Names that are not UTF-8 are changed to UTF-8:
/// they are not worth an exception. Numbers that are not finite become null, because JSON can't
/// express them.
class EventText {
 public:
  /// Room for about so many events.
  explicit EventText(u64 events);

  /// `what`: "process_name" or "thread_name".
  void label(char const* what, TextRow row, std::string_view name);
  /// Times in us. `arguments`: members of an object, such as `"chunk":3`, or none.
  void slice(TextRow row, std::string_view name, char const* category, double begin, double length,
             std::string_view arguments = {});
  void mark(TextRow row, std::string_view name, double at);

  /// Returns all of the text; `facts` are members of an object as above. Nothing can be added
  /// afterwards.
  std::string finish(std::string_view facts) &&;

  /// Text or numbers as JSON.
  static std::string quoted(std::string_view text);
  static std::string number(double value);

 private:
  void next() { text_ += text_.back() == '[' ? "" : ","; }
  std::string text_;
};

}  // namespace meshpost::trace
