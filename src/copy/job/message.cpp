#include "copy/job/message.hpp"

#include <fmt/format.h>

#include <cstring>

namespace meshpost::copying {

Heard read_message(std::string_view all) {
  auto const refuse = [](std::string cause) {
    throw Error(Kind::bad_argument, "read a message about a copy", std::move(cause),
                "let all processes run the same build");
  };
  Heard heard;
  auto& message = heard.message;
  if (all.size() < sizeof message)
    refuse(fmt::format("{} bytes are less than a header of {}", all.size(), sizeof message));
  std::memcpy(&message, all.data(), sizeof message);
  heard.bytes = all.substr(sizeof message);
  if (message.kind >= Message::Kind::count)
    refuse(fmt::format("kind {} is none", static_cast<u32>(message.kind)));
  if (message.bytes > largest_piece)
    refuse(fmt::format("a piece of {} bytes, the largest are of {}", message.bytes, largest_piece));
  bool const carries = message.kind == Message::Kind::put || message.kind == Message::Kind::bytes;
  u64 const expected = carries ? message.bytes : 0;
  if (message.kind != Message::Kind::refusal && heard.bytes.size() != expected)
    refuse(fmt::format("{} bytes follow, not {}", heard.bytes.size(), expected));
  return heard;
}

}  // namespace meshpost::copying
