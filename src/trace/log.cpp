#include "meshpost/trace/log.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <exception>

#include "meshpost/base/events.hpp"

namespace meshpost {

std::string format_log(LogRecord const& record) {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  std::string plain = record.text;
  auto const add = [&](auto value) {
    arguments.push_back(value);
    plain += fmt::format(" {}", value);
  };
  for (u32 i = 0; i < LogRecord::most_arguments; ++i) {
    u64 const bits = record.values[i];
    switch (record.types[i]) {
      case LogRecord::Type::none: break;
      case LogRecord::Type::i64_: add(static_cast<long>(bits)); break;
      case LogRecord::Type::u64_: add(bits); break;
      case LogRecord::Type::f64_: add(from_bits<double>(bits)); break;
      case LogRecord::Type::boolean: add(bits != 0); break;
      case LogRecord::Type::character: add(static_cast<char>(bits)); break;
      case LogRecord::Type::pointer: add(reinterpret_cast<void const*>(bits)); break;
    }
  }
  try {
    return fmt::vformat(record.text, arguments);
  } catch (fmt::format_error const&) {
    return plain;
  }
}

u32 LogReader::drain() {
  if (!ring_.records) return 0;
  u32 lines = 0;
  std::exception_ptr thrown;
  for (;; ++lines) {
    if (!ring_.is_whole(next_)) break;
    auto const& record = ring_.at(next_);
    auto const line = format_log(record);
    u32 const rank = record.rank;
    ring_.tell(++next_);
    try {
      event_sink()->log(rank, line);
    } catch (...) {
      if (!thrown) thrown = std::current_exception();  // ranks may wait for room: continue
    }
  }
  if (thrown) std::rethrow_exception(thrown);
  return lines;
}

}  // namespace meshpost
