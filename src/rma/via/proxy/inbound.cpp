#include "rma/via/proxy/inbound.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/host_hooks.hpp"

namespace meshpost::detail {
namespace {

void check_written(ProxyMessage const& message, std::string_view bytes) {
  if (message.sum != 0 && sum_of(bytes) != message.sum)
    throw Error(Kind::peer_lost, "receive a message",
                fmt::format("{} bytes that were written to offset {} of device {} were changed on "
                            "their way, or before or after it",
                            message.bytes, message.offset, message.device),
                "see that no rank changes the source of a put before flush, or its target before "
                "the notification; start the job again");
}

}  // namespace

// Nothing is written to where this process has no memory of the World.
char* Inbound::own_memory(u32 device, u64 offset, u64 bytes) const {
  char* const memory = addresses_.memory({device, offset}, bytes);
  if (!memory)
    refuse_message(fmt::format("it sent {} bytes for offset {} of device {}, where nothing is",
                               bytes, offset, device));
  return memory;
}

void Inbound::carry_out(u32 from, ProxyMessage const& message, Payload const& payload) {
  u32 const device = message.device;
  if (message.written == ProxyMessage::Written::to_slot) check_written(message, payload.bytes);
  auto const word = [&](u64 offset) {
    return reinterpret_cast<u32*>(own_memory(device, offset, sizeof(u32)));
  };
  Delivery delivery;
  switch (message.type) {
    case ProxyMessage::Type::put:
      if (message.written == ProxyMessage::Written::to_window) see_window(message);
      delivery.bytes = payload.bytes;
      delivery.keep = payload.keep;
      if (!delivery.bytes.empty())
        delivery.target = own_memory(device, message.offset, delivery.bytes.size());
      if (message.counter != 0) {
        delivery.counter = word(message.counter);
        delivery.sender_word = word(message.sender_word);
        delivery.value = 1;
        delivery.sender = message.sender;
      }
      break;
    case ProxyMessage::Type::add:
      delivery.counter = word(message.offset);
      delivery.value = static_cast<u32>(message.value);
      break;
    case ProxyMessage::Type::store:
      delivery.target = own_memory(device, message.offset, message.bytes);
      delivery.bytes = {reinterpret_cast<char const*>(&message.value),
                        std::min<u64>(message.bytes, sizeof message.value)};
      delivery.word = true;
      break;
    case ProxyMessage::Type::get: return answer_get(from, message);
    case ProxyMessage::Type::answer: return take_answer(message, payload);
    case ProxyMessage::Type::news:           // what it says was taken when it came
    case ProxyMessage::Type::count: return;  // read_message() has refused it
  }
  if (layout_.owns(device)) own_.access(device - layout_.first_device).deliver(delivery);
}

void Inbound::answer_get(u32 from, ProxyMessage const& message) {
  char const* const source = own_memory(message.device, message.offset, message.bytes);
  ProxyMessage answer;
  answer.type = ProxyMessage::Type::answer;
  answer.request = message.request;
  answer.bytes = message.bytes;
  answer.device = message.target_device;
  answer.offset = message.target;
  outbound_.put_long(message.device - layout_.first_device, from, answer, source, nullptr);
}

void Inbound::take_answer(ProxyMessage const& message, Payload const& payload) {
  bool const in_place = message.written == ProxyMessage::Written::to_window;
  u64 const size = in_place ? message.bytes : payload.bytes.size();
  auto const found = gets_.find(message.request);
  if (found == gets_.end()) return;  // of a rank that was ended
  auto const& get = found->second;
  if (message.position > get.size || size > get.size - message.position) return;
  auto come = [this, request = message.request, size] {
    auto const still = gets_.find(request);
    if (still == gets_.end()) return;
    still->second.left -= std::min<u64>(still->second.left, size);
    if (still->second.left != 0) return;
    memory::add(still->second.done, 1, Order::system);
    gets_.erase(still);
  };
  if (in_place) {
    see_window(message);
    return come();
  }
  hooks::at("fill a target");
  own_.with_memory_of_ranks(get.own, [&] {
    own_.access(get.own).write(get.target + message.position, payload.bytes, payload.keep, come);
  });
}

u64 Inbound::await(Get const& get) {
  gets_[++next_get_] = get;
  return next_get_;
}

// Whoever acquires what is released from now on sees the bytes.
void Inbound::see_window(ProxyMessage const& message) const {
  char* const memory = own_memory(message.device, message.offset, message.bytes);
  auto& device = *layout_.devices[message.device - layout_.first_device];
  if (device.in_host_memory()) check_written(message, {memory, message.bytes});
  else device.see_writes();
}

}  // namespace meshpost::detail
