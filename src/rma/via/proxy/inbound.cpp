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
                            parcel.message.bytes, parcel.message.place, parcel.message.device),
                "see that no rank changes the source of a put before flush, or its target before "
                "the notification; start the job again");
}

}  // namespace

// Nothing is written to places where this process has no memory of the World.
char* Inbound::own_memory(u32 device, u64 offset, u64 bytes) const {
  char* const memory = places_.memory({device, offset}, bytes);
  if (!memory)
    refuse_parcel(
        fmt::format("the sender sent {} bytes for offset {} of device {}, where nothing is", bytes,
                    offset, device));
  return memory;
}

void Inbound::carry_out(u32 from, Parcel const& parcel, Payload const& payload) {
  auto message = parcel.message;
  if (parcel.written == Parcel::Written::to_slot) check_written(parcel, payload.bytes);
  switch (message.kind) {
    case via::Message::Kind::get: return answer_get(from, parcel);
    case via::Message::Kind::answer: return take_answer(parcel, payload);
    case via::Message::Kind::put:
    case via::Message::Kind::store: break;
    case via::Message::Kind::news:           // its news was taken on arrival
    case via::Message::Kind::kinds: return;  // read_parcel() has refused it
  }
  if (parcel.written == Parcel::Written::to_window) see_window(parcel);
  // From here on, addresses are this process's.
  auto const address = [&](u64 offset, u64 bytes) {
    return reinterpret_cast<u64>(own_memory(message.device, offset, bytes));
  };
  if (!payload.bytes.empty()) message.place = address(message.place, payload.bytes.size());
  if (auto const& count = message.signal; count.any())
    message.signal = count.moved_to(address(count.at(), count.distance() + sizeof(u32)));
  if (payload.bytes.empty() && !message.signal.any()) return;  // a piece that is in place
  if (layout_.owns(message.device))
    own_.access(message.device - layout_.first_device)
        .deliver({message, payload.bytes, payload.keep});
}

void Inbound::answer_get(u32 from, Parcel const& parcel) {
  auto const& asked = parcel.message;
  if (parcel.own_device != Parcel::nowhere &&
      (parcel.own_device >= layout_.device_count() || layout_.processes[parcel.own_device] != from))
    refuse_parcel(fmt::format("the sender wants bytes in memory of device {}, which is not its own",
                              parcel.own_device));
  char const* const source = own_memory(asked.device, asked.place, asked.bytes);
  Parcel answer{.message = {.place = asked.own,
                            .bytes = asked.bytes,
                            .kind = via::Message::Kind::answer,
                            .device = parcel.own_device},
                .request = parcel.request};
  outbound_.put_long(asked.device - layout_.first_device, from, answer, source, nullptr);
}

void Inbound::take_answer(Parcel const& parcel, Payload const& payload) {
  bool const in_place = parcel.written == Parcel::Written::to_window;
  u64 const size = in_place ? parcel.message.bytes : payload.bytes.size();
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

// A rank that acquires a later release sees the bytes.
void Inbound::see_window(Parcel const& parcel) const {
  char* const memory =
      own_memory(parcel.message.device, parcel.message.place, parcel.message.bytes);
  auto& device = *layout_.devices[parcel.message.device - layout_.first_device];
  if (device.in_host_memory()) check_written(parcel, {memory, parcel.message.bytes});
  else device.see_writes();
}

}  // namespace meshpost::detail
