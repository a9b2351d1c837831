#include "trace/event_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace meshpost::trace {

EventText::EventText(u64 events) {
  constexpr u64 one = 140, most = u64{1} << 30;  // bytes; the text grows beyond `most` if needed
  text_.reserve(std::min(most, (events + 8) * one));
  text_ = R"({"displayTimeUnit":"ns","traceEvents":[)";
}

std::string EventText::quoted(std::string_view text) {
  auto const plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, plain)) return fmt::format("\"{}\"", text);
  using nlohmann::json;
  return json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string EventText::number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

void EventText::label(char const* what, TextRow row, std::string_view name) {
  next();
  fmt::format_to(std::back_inserter(text_),
                 R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                 row.process, row.thread, quoted(name));
}

void EventText::slice(TextRow row, std::string_view name, char const* category, double begin,
                      double length, std::string_view arguments) {
  next();
  fmt::format_to(std::back_inserter(text_),
                 R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{})",
                 quoted(name), category, row.process, row.thread, number(begin), number(length));
  if (!arguments.empty()) fmt::format_to(std::back_inserter(text_), R"(,"args":{{{}}})", arguments);
  text_ += '}';
}

void EventText::mark(TextRow row, std::string_view name, double at) {
  next();
  fmt::format_to(std::back_inserter(text_),
                 R"({{"ph":"i","s":"t","name":{},"cat":"mark","pid":{},"tid":{},"ts":{}}})",
                 quoted(name), row.process, row.thread, number(at));
}

std::string EventText::finish(std::string_view facts) && {
  fmt::format_to(std::back_inserter(text_), R"(],"otherData":{{{}}}}})", facts);
  return std::move(text_);
}

}  // namespace meshpost::trace
