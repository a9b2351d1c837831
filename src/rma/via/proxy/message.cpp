#include "rma/via/proxy/message.hpp"

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

ProxyMessage read_message(net::Channel::Message const& received) {
  ProxyMessage message;
  if (received.header.size() != sizeof message)
    refuse_message(fmt::format("it sent a header of {} bytes; a message's has {}",
                               received.header.size(), sizeof message));
  std::memcpy(&message, received.header.data(), sizeof message);
  using enum ProxyMessage::Type;
  bool const carries = message.has_bytes() && message.written == ProxyMessage::Written::no;
  if (message.type >= count)
    refuse_message(fmt::format("it sent a message of kind {}", static_cast<u32>(message.type)));
  if (received.bytes.size() != (carries ? message.bytes : 0))
    refuse_message(fmt::format("it sent {} bytes with a message of kind {} for {}",
                               received.bytes.size(), static_cast<u32>(message.type),
                               message.bytes));
  if (received.written != (message.written != ProxyMessage::Written::no))
    refuse_message("it told that the bytes of a message are written which has them with it");
  if (message.written >
      (message.has_bytes() ? ProxyMessage::Written::to_slot : ProxyMessage::Written::no))
    refuse_message(fmt::format("it sent a message of kind {} with bytes written elsewhere",
                               static_cast<u32>(message.type)));
  bool const odd =
      (message.type == put && (message.counter | message.sender_word) % sizeof(u32) != 0) ||
      (message.type == add && message.offset % sizeof(u32) != 0) ||
      (message.type == store && (!is_word(message.bytes) || message.offset % message.bytes != 0));
  if (odd)
    refuse_message(
        fmt::format("it sent a message of kind {} for a word of {} bytes at offset {}, where "
                    "none can be",
                    static_cast<u32>(message.type), message.bytes, message.offset));
  return message;
}

}  // namespace meshpost::detail
