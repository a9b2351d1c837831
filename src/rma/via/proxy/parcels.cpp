// Parcels that the proxy sends, and what it makes of those that come.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/host_places.hpp"
#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {
namespace {

constexpr u64 largest_parcel = u64{256} << 10;  // others get their turn in between

// Whether the parcel's bytes lie behind it; else they say how many a get wants.
bool carries_bytes(Parcel const& parcel) {
  return parcel.kind == Parcel::Kind::put || parcel.kind == Parcel::Kind::answer;
}

// Where it does is known: a store, a put, or the answer to a get into the heap.
bool changes_windows(Parcel const& parcel) {
  return (carries_bytes(parcel) || parcel.kind == Parcel::Kind::store) &&
         parcel.device != Parcel::nowhere;
}

}  // namespace

u64 Proxy::most_in_message() const {
  return std::min(largest_parcel, channel_->most(sizeof(Parcel)));
}

bool Proxy::send_queued() {
  bool any = false;
  for (u32 process = 0; process < peers_of_net_.size(); ++process) {
    if (process == peers_.number()) continue;  // carry_out_queued()
    auto& peer = peers_of_net_[process];
    while (!peer.queue.empty() && !lost(process)) {
      auto const out = peer.queue.front();
      if (!out->ready || !send_next(process, out)) break;
      any = true;
      if (out->sent == out->size) peer.queue.pop_front();
    }
  }
  return any;
}

// A parcel, with the next of its bytes. False: not now, as the channel has no room, or must not
// write yet.
bool Proxy::send_next(u32 process, OutgoingPtr const& out) {
  auto& peer = peers_of_net_[process];
  auto const way = out->written != 0 ? Way{} : way_of(process, *out);
  if (way.by == Way::By::later) return false;
  if (way.by == Way::By::message && out->device && out->written == 0)
    return read_instead(peer, *out), true;
  if (way.by == Way::By::write && !begin_write(process, out, way)) return false;
  bool const written = out->written != 0;
  u64 const size = written ? out->written : std::min<u64>(most_in_message(), out->rest().size());
  std::string_view payload = written ? std::string_view() : out->rest().substr(0, size);
  auto parcel = out->parcel;
  if (carries_bytes(parcel)) {
    parcel.bytes = size;
    parcel.offset += out->sent;
    parcel.position += out->sent;
    if (size != out->rest().size()) parcel.counter = 0;
  }
  if (written) {
    parcel.written = out->slot ? Parcel::Written::to_slot : Parcel::Written::to_window;
    parcel.slot = out->slot.value_or(0);
    parcel.sum = out->sum;
  }
  u32 const sequence = channel_->next(process);
  auto const sent = send_parcel(process, parcel,
                                {.header = {},
                                 .bytes = payload,
                                 .source = out,
                                 .answer = parcel.written == Parcel::Written::to_window});
  if (sent == net::Channel::Sent::no) return false;
  if (sent == net::Channel::Sent::reading) ++out->reading;
  auto const window =
      changes_windows(parcel) ? remote_heap_.find(parcel.device, parcel.offset) : std::nullopt;
  if (window) {
    bool const in_place = parcel.written == Parcel::Written::to_window;
    Undelivered::Range const range{parcel.device, parcel.offset, parcel.bytes};
    auto const by = in_place ? Undelivered::By::write : Undelivered::By::message;
    peer.undelivered.add(sequence, range, by);
    if (!in_place && !window->in_host_memory) peer.unsettled.add(sequence, range, by);
  }
  out->sent += size;
  out->written = 0;
  end_if_read(*out);
  return true;
}

net::Channel::Sent Proxy::send_parcel(u32 process, Parcel& parcel, net::Channel::Out out) {
  parcel.settled = settled(process);
  parcel.freed = staging_.freed_for(process);
  out.header = {reinterpret_cast<char const*>(&parcel), sizeof parcel};
  auto const sent = channel_->send(process, Parcel::message_kind, out);
  if (sent != net::Channel::Sent::no) staging_.told(process, parcel.freed);
  return sent;
}

// What was carried out and let go of, to those that no other parcel has told. `idle`: there is
// nothing else to do.
bool Proxy::tell_news(bool idle) {
  bool any = false;
  for (u32 process = 0; process < peers_of_net_.size(); ++process) {
    if (process == peers_.number() || channel_->must_announce(process)) continue;
    if (!channel_->owes_news(process, idle) && !staging_.news(process)) continue;
    Parcel parcel;
    parcel.run = run_;
    parcel.kind = Parcel::Kind::news;
    any |=
        send_parcel(process, parcel, {.header = {}, .only_tells = true}) != net::Channel::Sent::no;
  }
  return any;
}

// -- what comes

void Proxy::on_message(u32 process, net::Channel::Message const& message) {
  auto const parcel = read_parcel(message);
  peers_of_net_[process].unsettled.delivered_before(parcel.settled);
  staging_.freed(process, parcel.freed);
  // Also where they are not carried out: then the slot is free again at once.
  auto const payload = parcel.written == Parcel::Written::to_slot
                           ? staging_.take(process, parcel.slot, parcel.bytes)
                           : Payload{message.bytes, nullptr};
  if (parcel.run == run_ && !over_) carry_out(process, parcel, payload);
}

void Proxy::on_heard(u32 process, u32 before) {
  peers_of_net_[process].undelivered.delivered_before(before);
}

// Nothing is written to where this process has no memory of the World.
char* Proxy::own_memory(u32 device, u64 offset, u64 bytes) const {
  char* const memory = places_.memory({device, offset}, bytes);
  if (!memory)
    refuse_parcel(fmt::format("it sent {} bytes for offset {} of device {}, where nothing is",
                              bytes, offset, device));
  return memory;
}

void Proxy::carry_out(u32 from, Parcel const& parcel, Payload const& payload) {
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
  if (layout_.owns(device)) access_of(device).deliver(delivery);
}

void Proxy::answer_get(u32 from, Parcel const& parcel) {
  char const* const source = own_memory(parcel.device, parcel.offset, parcel.bytes);
  Parcel answer;
  answer.run = run_;
  answer.kind = Parcel::Kind::answer;
  answer.request = parcel.request;
  answer.bytes = parcel.bytes;
  answer.device = parcel.target_device;
  answer.offset = parcel.target;
  queue_long(parcel.device - layout_.first_device, from, answer, source, nullptr);
}

void Proxy::take_answer(Parcel const& parcel, Payload const& payload) {
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
  with_memory_of_ranks(get.own, [&] {
    own_[get.own].access->write(get.target + parcel.position, payload.bytes, payload.keep, come);
  });
}

void Proxy::on_lost(u32 process, std::string const& why) {
  peers_of_net_[process].queue.clear();
  fail({Kind::peer_lost, "send to another process",
        fmt::format("{} is out of reach of {}: {}", peers_.processes().name(process),
                    channel_->engine().name(), why),
        "see its own messages and the network's, and start the job again"});
}

}  // namespace meshpost::detail
