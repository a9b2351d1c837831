#include "rma/via/proxy/inbound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/host_hooks.hpp"

namespace meshpost::detail {
namespace {

bool is_word(u64 bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

void check_written(WireMessage const& wire, std::string_view bytes) {
  if (wire.sum != 0 && sum_of(bytes) != wire.sum)
    throw Error(Kind::peer_lost, "receive a message",
                fmt::format("{} bytes that were written to offset {} of device {} were changed on "
                            "their way, or before or after it",
                            wire.message.bytes, wire.message.address, wire.message.device),
                "see that no rank changes the source of a put before flush, or its target before "
                "the notification; start the job again");
}

}  // namespace

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

// Nothing is written to places where this process has no memory of the World.
char* Inbound::own_memory(u32 device, u64 offset, u64 bytes) const {
  char* const memory = addresses_.memory({device, offset}, bytes);
  if (!memory)
    refuse_message(
        fmt::format("the sender sent {} bytes for offset {} of device {}, where nothing is", bytes,
                    offset, device));
  return memory;
}

void Inbound::carry_out(u32 from, WireMessage const& wire, Payload const& payload) {
  auto message = wire.message;
  if (wire.written == WireMessage::Written::to_slot) check_written(wire, payload.bytes);
  switch (message.type) {
    case via::Message::Type::get: return answer_get(from, wire);
    case via::Message::Type::answer: return take_answer(wire, payload);
    case via::Message::Type::put:
    case via::Message::Type::store: break;
    case via::Message::Type::news:           // its news was taken on arrival
    case via::Message::Type::types: return;  // read_message() has refused it
  }
  if (wire.written == WireMessage::Written::to_window) see_window(wire);
  // From here on, addresses are this process's.
  auto const address = [&](u64 offset, u64 bytes) {
    return reinterpret_cast<u64>(own_memory(message.device, offset, bytes));
  };
  if (!payload.bytes.empty()) message.address = address(message.address, payload.bytes.size());
  if (auto const& count = message.signal; count.any())
    message.signal = count.moved_to(address(count.at(), count.distance() + sizeof(u32)));
  if (payload.bytes.empty() && !message.signal.any()) return;  // a piece that is in place
  if (layout_.owns(message.device))
    own_.access(message.device - layout_.first_device)
        .deliver({message, payload.bytes, payload.keep});
}

void Inbound::answer_get(u32 from, WireMessage const& wire) {
  auto const& asked = wire.message;
  if (wire.own_device != WireMessage::nowhere &&
      (wire.own_device >= layout_.device_count() || layout_.processes[wire.own_device] != from))
    refuse_message(fmt::format(
        "the sender wants bytes in memory of device {}, which is not its own", wire.own_device));
  char const* const source = own_memory(asked.device, asked.address, asked.bytes);
  WireMessage answer{.message = {.address = asked.own,
                                 .bytes = asked.bytes,
                                 .type = via::Message::Type::answer,
                                 .device = wire.own_device},
                     .request = wire.request};
  outbound_.put_long(asked.device - layout_.first_device, from, answer, source, nullptr);
}

void Inbound::take_answer(WireMessage const& wire, Payload const& payload) {
  bool const in_place = wire.written == WireMessage::Written::to_window;
  u64 const size = in_place ? wire.message.bytes : payload.bytes.size();
  auto const found = gets_.find(wire.request);
  if (found == gets_.end()) return;  // of a rank that was ended
  auto const& get = found->second;
  if (wire.position > get.size || size > get.size - wire.position) return;
  auto come = [this, request = wire.request, size] {
    auto const still = gets_.find(request);
    if (still == gets_.end()) return;
    still->second.left -= std::min<u64>(still->second.left, size);
    if (still->second.left != 0) return;
    memory::add(still->second.done, 1, Order::system);
    gets_.erase(still);
  };
  if (in_place) {
    see_window(wire);
    return come();
  }
  hooks::at("fill a target");
  own_.with_memory_of_ranks(get.own, [&] {
    own_.access(get.own).write(get.target + wire.position, payload.bytes, payload.keep, come);
  });
}

u64 Inbound::await(Get const& get) {
  gets_[++next_get_] = get;
  return next_get_;
}

// A rank that acquires a later release sees the bytes.
void Inbound::see_window(WireMessage const& wire) const {
  char* const memory = own_memory(wire.message.device, wire.message.address, wire.message.bytes);
  auto& device = *layout_.devices[wire.message.device - layout_.first_device];
  if (device.in_host_memory()) check_written(wire, {memory, wire.message.bytes});
  else device.see_writes();
}

}  // namespace meshpost::detail
