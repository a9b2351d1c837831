// What the proxy makes of requests: what is to be sent, and where its bytes come from.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/host_places.hpp"
#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {
namespace {

// Of what is read from devices, so much is copied at once: memory that it passes through is scarce.
constexpr u64 short_read = u64{16} << 10;

}  // namespace

void Proxy::take(u32 own, PostRecord const& record) {
  auto const& alone = record.alone;
  auto const post =
      alone.place == 0
          ? record.post
          : Post{.rank = alone.number, .counter = alone.counter(), .sender = alone.sender_word()};
  auto& asker = own_[own];
  Parcel parcel;
  parcel.run = run_;
  parcel.sender = WindowInfo::raiser(post.rank);
  parcel.bytes = post.bytes;
  parcel.value = post.value;
  u32* const done = post.waits ? asker.done.as<u32>() + post.local_rank : nullptr;
  // A notification alone has no target, only a counter.
  auto const place = places_.of(own, post.kind == Post::Kind::get ? post.source
                                     : post.target                ? post.target
                                                                  : post.counter);
  u32 const process = layout_.processes[place.device];
  parcel.device = place.device;
  parcel.offset = place.offset;
  switch (post.kind) {
    case Post::Kind::add: parcel.kind = Parcel::Kind::add; break;
    case Post::Kind::store: parcel.kind = Parcel::Kind::store; break;
    case Post::Kind::get:
      parcel.kind = Parcel::Kind::get;
      parcel.request = ++next_get_;
      if (post.bytes == 0) {
        memory::add(done, 1, Order::system);
        return;
      }
      gets_[parcel.request] = {own, done, static_cast<char*>(post.target), post.bytes, post.bytes};
      if (outlives_ranks(own, post.target, post.bytes)) {
        auto const target = places_.of(own, post.target);
        parcel.target_device = target.device;
        parcel.target = target.offset;
      }
      break;
    case Post::Kind::put:
      if (post.counter) {
        parcel.counter = places_.of(own, post.counter).offset;
        parcel.sender_word = places_.of(own, post.sender).offset;
      }
      if (post.waits)
        return queue_long(own, process, parcel, static_cast<char const*>(post.source), done);
      queue(process, parcel, post.bytes)->copy.assign(record.data, post.bytes);
      return;
  }
  queue(process, parcel);
}

Proxy::OutgoingPtr Proxy::make_outgoing(Parcel const& parcel, u64 bytes) {
  held_ += bytes;
  return OutgoingPtr(new Outgoing{.parcel = parcel, .size = bytes, .holds = bytes, .held = held_});
}

Proxy::OutgoingPtr Proxy::queue(u32 process, Parcel const& parcel, u64 bytes) {
  auto out = make_outgoing(parcel, bytes);
  if (!lost(process)) peers_of_net_[process].queue.push_back(out);
  return out;
}

// Queued now, for the order; sent when the bytes have been read. The counter is raised with the
// last. `done`, if any, is raised when all have been read: many bytes of the host's heap, and those
// of devices that the engine reads, by the engine itself; others into memory of this process, as a
// rank may be ended before the engine has.
void Proxy::queue_long(u32 own, u32 process, Parcel parcel, char const* source, u32* done) {
  u64 const size = parcel.bytes;
  auto const window =
      process != peers_.number() && size != 0 ? own_window(own, source, size) : std::nullopt;
  if (window || (process != peers_.number() && size > most_in_message() &&
                 outlives_ranks(own, source, size))) {
    auto const out = queue(process, parcel);
    out->source = window ? heap_.at(window->device, window->offset) : source;
    if (window) out->device = window->device - layout_.first_device;
    out->size = size;
    out->done = done;
    return;
  }
  auto pieces = read_in_pieces(own, parcel, source, size, [done] {
    if (done) memory::add(done, 1, Order::system);
  });
  if (!lost(process)) std::ranges::move(pieces, std::back_inserter(peers_of_net_[process].queue));
}

std::deque<Proxy::OutgoingPtr> Proxy::read_in_pieces(u32 own, Parcel parcel, char const* source,
                                                     u64 size, std::function<void()> const& read) {
  std::deque<OutgoingPtr> pieces;
  u64 const counter = parcel.counter;
  for (u64 at = 0; at < size; at += Access::largest) {
    u64 const piece = std::min(Access::largest, size - at);
    bool const last = at + piece == size;
    parcel.bytes = piece;
    parcel.counter = last ? counter : 0;
    auto const out = pieces.emplace_back(make_outgoing(parcel, piece));
    out->ready = false;
    auto take = [out, read = last ? read : nullptr](std::string_view bytes, Keep const& keep) {
      if (keep && bytes.size() > short_read) out->source = bytes.data(), out->keep = keep;
      else out->copy = bytes;
      out->ready = true;
      if (read) read();
    };
    hooks::at("read a source");
    with_memory_of_ranks(own, [&] { own_[own].access->read(source + at, piece, std::move(take)); });
    parcel.offset += piece;
    parcel.position += piece;
  }
  return pieces;
}

// What only the engine can read, but is to go in messages: the rest is read into memory of the
// host.
void Proxy::read_instead(Peer& peer, Outgoing& out) {
  auto parcel = out.parcel;
  parcel.offset += out.sent;
  parcel.position += out.sent;
  ++out.reading;
  auto const itself = peer.queue.front();  // `out`
  auto pieces = read_in_pieces(*out.device, parcel, out.source + out.sent, out.size - out.sent,
                               [this, itself] {
                                 --itself->reading;
                                 end_if_read(*itself);
                               });
  out.sent = out.size;
  peer.queue.insert(peer.queue.begin() + 1, pieces.begin(), pieces.end());
}

}  // namespace meshpost::detail
