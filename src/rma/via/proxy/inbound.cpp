#include "rma/via/proxy/inbound.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/host_places.hpp"

namespace meshpost::detail {
namespace {

void check_written(Parcel const& parcel, std::string_view bytes) {
  if (parcel.sum != 0 && sum_of(bytes) != parcel.sum)
    throw Error(Kind::peer_lost, "receive a parcel",
                fmt::format("{} bytes that were written to offset {} of device {} were changed on "
                            "their way, or before or after it",
                            parcel.bytes, parcel.offset, parcel.device),
                "see that no rank changes the source of a put before flush, or its target before "
                "the notification; start the job again");
}

}  // namespace

// Nothing is written to where this process has no memory of the World.
char* Inbound::own_memory(u32 device, u64 offset, u64 bytes) const {
  char* const memory = places_.memory({device, offset}, bytes);
  if (!memory)
    refuse_parcel(fmt::format("it has {} bytes for offset {} of device {}, where nothing is", bytes,
                              offset, device));
  return memory;
}

void Inbound::carry_out(u32 from, Parcel const& parcel, Payload const& payload) {
  u32 const device = parcel.device;
  if (parcel.written == Parcel::Written::to_slot) check_written(parcel, payload.bytes);
  auto const word = [&](u64 offset) {
    return reinterpret_cast<u32*>(own_memory(device, offset, sizeof(u32)));
  };
  Delivery delivery;
  switch (parcel.kind) {
    case Parcel::Kind::put:
      if (parcel.written == Parcel::Written::to_window) see_window(parcel);
      delivery.bytes = payload.bytes;
      delivery.keep = payload.keep;
      if (!delivery.bytes.empty())
        delivery.target = own_memory(device, parcel.offset, delivery.bytes.size());
      if (parcel.counter != 0) {
        delivery.counter = word(parcel.counter);
        delivery.sender_word = word(parcel.sender_word);
        delivery.value = 1;
        delivery.sender = parcel.sender;
      }
      break;
    case Parcel::Kind::add:
      delivery.counter = word(parcel.offset);
      delivery.value = static_cast<u32>(parcel.value);
      break;
    case Parcel::Kind::store:
      delivery.target = own_memory(device, parcel.offset, parcel.bytes);
      delivery.bytes = {reinterpret_cast<char const*>(&parcel.value),
                        std::min<u64>(parcel.bytes, sizeof parcel.value)};
      delivery.word = true;
      break;
    case Parcel::Kind::get: return answer_get(from, parcel);
    case Parcel::Kind::answer: return take_answer(parcel, payload);
    case Parcel::Kind::news:           // what it says was taken when it came
    case Parcel::Kind::count: return;  // read_parcel() has refused it
  }
  if (layout_.owns(device)) own_.access(device - layout_.first_device).deliver(delivery);
}

void Inbound::answer_get(u32 from, Parcel const& parcel) {
  char const* const source = own_memory(parcel.device, parcel.offset, parcel.bytes);
  Parcel answer;
  answer.kind = Parcel::Kind::answer;
  answer.request = parcel.request;
  answer.bytes = parcel.bytes;
  answer.device = parcel.target_device;
  answer.offset = parcel.target;
  outbound_.put_long(parcel.device - layout_.first_device, from, answer, source, nullptr);
}

void Inbound::take_answer(Parcel const& parcel, Payload const& payload) {
  bool const in_place = parcel.written == Parcel::Written::to_window;
  u64 const size = in_place ? parcel.bytes : payload.bytes.size();
  auto const found = gets_.find(parcel.request);
  if (found == gets_.end()) return;  // of a rank that was ended
  auto const& get = found->second;
  if (parcel.position > get.size || size > get.size - parcel.position) return;
  auto come = [this, request = parcel.request, size] {
    auto const still = gets_.find(request);
    if (still == gets_.end()) return;
    still->second.left -= std::min<u64>(still->second.left, size);
    if (still->second.left != 0) return;
    memory::add(still->second.done, 1, Order::system);
    gets_.erase(still);
  };
  if (in_place) {
    see_window(parcel);
    return come();
  }
  hooks::at("fill a target");
  own_.with_memory_of_ranks(get.own, [&] {
    own_.access(get.own).write(get.target + parcel.position, payload.bytes, payload.keep, come);
  });
}

u64 Inbound::await(Get const& get) {
  gets_[++next_get_] = get;
  return next_get_;
}

// Whoever acquires what is released from now on sees the bytes.
void Inbound::see_window(Parcel const& parcel) const {
  char* const memory = own_memory(parcel.device, parcel.offset, parcel.bytes);
  auto& device = *layout_.devices[parcel.device - layout_.first_device];
  if (device.in_host_memory()) check_written(parcel, {memory, parcel.bytes});
  else device.see_writes();
}

}  // namespace meshpost::detail
