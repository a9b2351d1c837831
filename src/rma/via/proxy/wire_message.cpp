#include "rma/via/proxy/wire_message.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/hash.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::detail {
namespace {

bool is_word(u64 bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

}  // namespace

void refuse_message(std::string cause) {
  throw Error(Kind::peer_lost, "receive a message", std::move(cause),
              "start the job again; if it happens again, report it");
}

u64 sum_of(std::string_view bytes) {
  u64 const sum = hash_of(bytes);
  return sum == 0 ? 1 : sum;
}

WireMessage read_message(net::Channel::Message const& message) {
  WireMessage wire;
  if (message.header.size() != sizeof wire)
    refuse_message(fmt::format("the sender sent a header of {} bytes; a message's has {}",
                               message.header.size(), sizeof wire));
  std::memcpy(&wire, message.header.data(), sizeof wire);
  auto const& [count, address, size, own, type, device] = wire.message;
  using enum WireMessage::Type;
  bool const carries = wire.has_bytes() && wire.written == WireMessage::Written::no;
  if (type >= types)
    refuse_message(fmt::format("the sender sent a message of type {}", static_cast<u32>(type)));
  if (message.bytes.size() != (carries ? size : 0))
    refuse_message(fmt::format("the sender sent {} bytes with a message of type {} for {}",
                               message.bytes.size(), static_cast<u32>(type), size));
  if (message.written != (wire.written != WireMessage::Written::no))
    refuse_message(
        "the sender sent a message whose header and message disagree on where its bytes are");
  bool const may_be_written = wire.has_bytes() && type != store;
  if (wire.written > (may_be_written ? WireMessage::Written::to_slot : WireMessage::Written::no))
    refuse_message(fmt::format("the sender sent a message of type {} with bytes written elsewhere",
                               static_cast<u32>(type)));
  if (count.counter % sizeof(u32) != 0 ||
      (type == store && (!is_word(size) || address % size != 0)))
    refuse_message(fmt::format(
        "the sender sent a message of type {} for a word of {} bytes at offset {}, where "
        "none can be",
        static_cast<u32>(type), size, type == store ? address : count.at()));
  return wire;
}

}  // namespace meshpost::detail
