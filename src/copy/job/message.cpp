#include "copy/job/message.hpp"

#include <fmt/format.h>

#include <cstring>

namespace meshpost::copying {

Message read_message(net::Channel::Message const& come) {
  auto const refuse = [](std::string cause) {
    throw Error(Kind::bad_argument, "read a message about a copy", std::move(cause),
                "let all processes run the same build");
  };
  Message message;
  if (come.header.size() != sizeof message)
    refuse(fmt::format("its header has {} bytes, not {}", come.header.size(), sizeof message));
  std::memcpy(&message, come.header.data(), sizeof message);
  if (message.type >= Message::Type::count)
    refuse(fmt::format("kind {} is none", static_cast<u32>(message.type)));
  if (message.bytes > largest_piece)
    refuse(fmt::format("a piece of {} bytes, the largest are of {}", message.bytes, largest_piece));
  bool const carries = message.type == Message::Type::put || message.type == Message::Type::bytes;
  u64 const expected = carries ? message.bytes : 0;
  if (come.written || (message.type != Message::Type::refusal && come.bytes.size() != expected))
    refuse(fmt::format("{} bytes follow, not {}", come.bytes.size(), expected));
  return message;
}

}  // namespace meshpost::copying
