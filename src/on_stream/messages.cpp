// Where messages of message windows lie.
#include <fmt/format.h>

#include <algorithm>

#include "on_stream/destination.hpp"

namespace meshpost::detail {

void Destinations::check_message(Told const& told, StreamCall const& call) const {
  auto const& box = call.messages;
  auto const refuse = [&](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, told.text(), std::move(cause), std::move(remedy));
  };
  if (stream_.number >= box.streams)
    refuse(fmt::format("this is stream {} of its device; the message window has {}", stream_.number,
                       box.streams),
           "make the message window with MessageWindowOptions::streams for all that use it");
  if (call.peer.device >= box.devices || call.peer.number >= box.streams)
    refuse(fmt::format(
               "stream {} of device {} was named; the message window has streams 0 to {} of each "
               "of {} devices",
               call.peer.number, static_cast<i32>(call.peer.device), box.streams - 1, box.devices),
           "name a stream that it has, or make it with more (MessageWindowOptions::streams)");
  // Numbers of chunks wrap.
  if (call.count > (u64{1} << 30) * box.slot_bytes / call.element_bytes)
    refuse(fmt::format("{} elements of {} bytes were named", call.count, call.element_bytes),
           "send parts of at most 2^30 slots");
  if (call.tag.value >= box.tags)
    refuse(fmt::format("tag {} does not exist; it has {}", call.tag.value, box.tags),
           "use a smaller tag, or make the message window with more");
}

// Out of reach: where the sender's host writes, or whom the receiver's host tells that a slot is
// free.
FarTarget Destinations::far_end(WindowRecord const& record, StreamCall const& call) const {
  auto const& box = call.messages;
  u32 const back = box.channel(stream_, call.tag);  // for the other end, this is the peer
  FarTarget far(world_, record.info);
  far.notified_ = call.peer;
  if (call.verb == StreamCall::send) {
    u32 const rank = call.peer.device * world_.layout().ranks_per_device;
    far.address_ = world_.windows().address_of(record, rank);
    far.address_.offset += box.slots_at(call.peer.number, back);
    far.tag_ = Tag{back};
  } else {
    far.tag_ = Tag{box.channels() + back};
  }
  return far;
}

ResolvedCall Destinations::message(std::string const& operation, StreamCall const& call) const {
  auto const lock = world_.queue().now();
  auto const& record = world_.windows().record_of(call.window, operation);
  Told const told{operation, record.name};
  check_message(told, call);
  auto const& box = call.messages;
  bool const sends = call.verb == StreamCall::send;
  u32 const channel = box.channel(call.peer, call.tag), back = box.channel(stream_, call.tag);
  auto const memory_of = [&](u32 device) {
    return world_.windows().part_of(own(), record, device * world_.layout().ranks_per_device);
  };
  // Three words' places: taken, sent (a line further), freed[] (another one).
  constexpr u64 line = ChunkHeader::pitch;
  auto const words = [&](u32 device, u32 mine, u32 number) {
    return memory_of(device) + box.words_at(mine, number);
  };
  ResolvedCall found;
  found.window = record.name;
  auto& end = found.channel;
  end.number =
      reinterpret_cast<u32*>(words(stream_.device, stream_.number, channel) + (sends ? line : 0));
  end.slot_count = box.slots, end.slot_bytes = box.slot_bytes;
  end.window = record.info.number, end.tag = call.tag.value;
  end.peer = word_of(call.peer);
  bool const far = world_.layout().far(own(), call.peer.device);
  u32 const sender = sends ? stream_.device : call.peer.device;
  if (!sends) end.slots = memory_of(stream_.device) + box.slots_at(stream_.number, channel);
  if (!far) {
    if (sends) end.slots = memory_of(call.peer.device) + box.slots_at(call.peer.number, back);
    end.freed = reinterpret_cast<u32*>(
        (sends ? words(sender, stream_.number, channel) : words(sender, call.peer.number, back)) +
        2 * line);
    return found;
  }
  auto const come = counter(record, {Tag{sends ? box.channels() + channel : channel}, 0});
  end.come = come.raised, end.come_by_host = come.raised_by_host;
  found.far = far_end(record, call);
  return found;
}

std::vector<Destinations::Sender> Destinations::unreceived_messages(StreamCall const& call) const {
  constexpr u32 most_found = 8, most_looks = 4096;
  auto& device = *world_.layout().devices[own()];
  auto const read = [&](void const* word) {
    u32 value = 0;
    device.read(&value, word, Bytes{sizeof value});
    return value;
  };
  auto const has_come = [&](StreamChannel const& from) {
    u32 const n = read(from.number);
    if (from.freed) return read(&from.header(n)->flag) == n + 1;
    return static_cast<i32>(read(from.come) + memory::load_acquire(from.come_by_host) - n) > 0;
  };
  std::vector<Sender> found;
  auto one = call;
  one.verb = StreamCall::receive;
  for (u32 channel = 0; channel < std::min(call.messages.channels(), most_looks); ++channel) {
    u32 const stream = channel / call.messages.tags;
    one.peer = {stream / call.messages.streams, stream % call.messages.streams};
    one.tag = Tag{channel % call.messages.tags};
    if (has_come(message("receive", one).channel)) found.push_back({one.peer, one.tag});
    if (found.size() == most_found) break;
  }
  return found;
}

}  // namespace meshpost::detail
