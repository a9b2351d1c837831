// Parcels that the proxy sends, and what it makes of those that come.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/host_places.hpp"
#include "rma/proxy.hpp"

namespace meshpost::detail {
namespace {

constexpr u64 largest_parcel = u64{256} << 10;  // others get their turn in between
constexpr u64 short_payload = 512;              // goes along with the header, which engines copy

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
  return std::min(largest_parcel, engine_->most() - sizeof(Parcel));
}

bool Proxy::send_queued() {
  bool any = false;
  for (u32 process = 0; process < peers_of_net_.size(); ++process) {
    if (process == peers_.number()) continue;  // carry_out_queued()
    auto& peer = peers_of_net_[process];
    while (!peer.queue.empty() && !peer.lost) {
      auto const out = peer.queue.front();
      if (!out->ready || !send_next(process, out)) break;
      any = true;
      if (out->sent == out->size) peer.queue.pop_front();
    }
  }
  return any;
}

// A parcel, with the next of its bytes. False: not now, as the engine has no room, or must not
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
  u64 const cookie = payload.size() <= short_payload ? 0 : begin_reading(process, out, false);
  u32 const sequence = peer.next_out;
  if (!send_parcel(process, parcel, payload, cookie)) {
    if (cookie != 0) on_done(cookie);
    return false;
  }
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

bool Proxy::send_parcel(u32 process, Parcel& parcel, std::string_view payload, u64 cookie) {
  auto& peer = peers_of_net_[process];
  parcel.sequence = peer.next_out;
  parcel.delivered = peer.next_in;
  parcel.settled = settled(peer);
  parcel.freed = staging_.freed_for(process);
  parcel.check = check_of(parcel, payload);
  std::array<char, sizeof parcel + short_payload> header;
  std::memcpy(header.data(), &parcel, sizeof parcel);
  u64 size = sizeof parcel;
  if (payload.size() <= short_payload) {
    payload.copy(header.data() + size, payload.size());
    size += std::exchange(payload, {}).size();
  }
  // Counted before: whoever sees that it has arrived must not find that it was never sent.
  peer.sent.fetch_add(1);
  sent_in_all_.fetch_add(1);
  if (!engine_->send(process, std::span(header).first(size), payload, cookie)) {
    peer.sent.fetch_sub(1);
    sent_in_all_.fetch_sub(1);
    return false;
  }
  ++peer.next_out;
  peer.told = parcel.delivered;
  peer.waits = false;
  staging_.told(process, parcel.freed);
  return true;
}

// -- what comes

void Proxy::on_message(u32 process, std::span<char const> bytes) {
  begin_work();
  auto& peer = peers_of_net_[process];
  if (peer.lost) return;
  try {
    auto const come = read_parcel({bytes.data(), bytes.size()});
    peer.undelivered.delivered_before(come.parcel.delivered);
    peer.unsettled.delivered_before(come.parcel.settled);
    staging_.freed(process, come.parcel.freed);
    // The network keeps no order: it waits for its turn, or for bytes that are written.
    u32 const ahead = come.parcel.sequence - peer.next_in;
    bool const now =
        ahead == 0 && !peer.early.contains(peer.next_in) && has_landed(peer, come.parcel);
    if (now) apply(process, come);
    else if (ahead > ~u32{0} / 2 ||
             !peer.early.emplace(come.parcel.sequence, std::string(bytes.data(), bytes.size()))
                  .second)
      return on_lost(process, "a parcel came twice");
    apply_early(process);
  } catch (Error const& error) {
    on_lost(process, error.cause());
  }
}

void Proxy::apply_early(u32 from) {
  auto& peer = peers_of_net_[from];
  for (;;) {
    auto const next = peer.early.find(peer.next_in);
    if (next == peer.early.end()) return;
    auto const come = read_parcel(next->second);
    if (!has_landed(peer, come.parcel)) return;
    auto const kept = peer.early.extract(next);
    apply(from, come);
  }
}

void Proxy::apply(u32 from, Arrival const& come) {
  auto& peer = peers_of_net_[from];
  auto const& parcel = come.parcel;
  ++peer.next_in;
  if (bool const landed = peer.landed.erase(parcel.sequence) != 0;
      landed != (parcel.written != Parcel::Written::no))
    refuse_parcel("it told that the bytes of a parcel are written which has them with it");
  peer.waits |= parcel.written == Parcel::Written::to_window;
  // Also where they are not carried out: then the slot is free again at once.
  auto const payload = parcel.written == Parcel::Written::to_slot
                           ? staging_.take(from, parcel.slot, parcel.bytes)
                           : Payload{come.payload, nullptr};
  if (parcel.run == run_ && !over_) carry_out(from, parcel, payload);
  peer.received.fetch_add(1, std::memory_order_release);
  received_in_all_.fetch_add(1, std::memory_order_release);
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
    case Parcel::Kind::delivered:      // what it says was taken when it came
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
  auto& peer = peers_of_net_[process];
  peer.lost = true;
  peer.early.clear();
  peer.landed.clear();
  peer.queue.clear();
  fail({Kind::peer_lost, "send to another process",
        fmt::format("{} is out of reach of {}: {}", peers_.processes().name(process),
                    engine_->name(), why),
        "see its own messages and the network's, and start the job again"});
}

}  // namespace meshpost::detail
