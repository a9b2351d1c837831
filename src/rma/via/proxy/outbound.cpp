#include "rma/via/proxy/outbound.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/host_hooks.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::detail {
namespace {

constexpr u64 most_held = u64{32} << 20;  // above it, ranks wait until something was sent
// Up to so many bytes read from a device are copied at once, because the memory that they pass
// through is scarce.
constexpr u64 short_read = u64{16} << 10;

}  // namespace

void Outbound::connect(net::Channel& channel) {
  channel_ = &channel;
  writes_.emplace(static_cast<WorldMemory const&>(*this), own_, channel);
  writes_->join();
}

void Outbound::begin_run(u32 run) {
  run_ = run;
  over_ = false;
  if (writes_) writes_->begin_run();
}

void Outbound::abandon() {
  over_ = true;
  for (auto& queue : queues_) {
    // A write that has begun keeps its message: later messages have the sequence numbers behind it.
    bool const told = queue.empty() || queue.front()->written == 0;
    if (told) {
      queue.clear();
      continue;
    }
    auto& first = *queue.front();
    first.size = first.sent + first.written;
    queue.resize(1);
  }
}

void Outbound::forget_all() {
  for (auto& queue : queues_) queue.clear();
}

bool Outbound::is_full() const { return held_ >= most_held; }

OutgoingPtr Outbound::make(WireMessage const& wire, u64 bytes) {
  held_ += bytes;
  auto out = OutgoingPtr(new Outgoing{.wire = wire, .size = bytes, .holds = bytes, .held = held_});
  out->wire.run = run_;
  return out;
}

OutgoingPtr Outbound::queue(u32 process, WireMessage const& wire, u64 bytes) {
  auto out = make(wire, bytes);
  if (!lost(process)) queues_[process].push_back(out);
  return out;
}

// It holds no bytes. But its rank goes on, and may add such messages much faster than they are
// sent. Then messages of other ranks would wait long behind them. So each counts a little, as some
// hundreds do no harm. All count together, so a slow process with more of them keeps others
// waiting, too.
OutgoingPtr Outbound::queue_in_place(u32 process, WireMessage const& wire, char const* source) {
  constexpr u64 most_counted = most_held / 512;
  auto out = queue(process, wire, std::min(wire.message.bytes, most_counted));
  out->source = source;
  out->size = wire.message.bytes;
  return out;
}

void Outbound::put(u32 process, WireMessage const& wire, std::string_view bytes) {
  queue(process, wire, bytes.size())->copy = bytes;
}

namespace {
// Calls work(message, its place among all bytes, true for the last) for each piece of a message.
template <class Work>
void each_piece(WireMessage wire, Work&& work) {
  u64 const size = wire.message.bytes;
  via::Signal const count = wire.message.signal;
  for (u64 at = 0; at < size; at += Access::largest) {
    u64 const piece = std::min(Access::largest, size - at);
    bool const last = at + piece == size;
    wire.message.bytes = piece;
    wire.message.signal = last ? count : via::Signal{};
    work(wire, at, last);
    wire.message.address += piece;
    wire.position += piece;
  }
}
}  // namespace

// Queued now, to keep the order; sent when the bytes have been read. The engine itself reads many
// bytes of the host's heap, and bytes of devices that it reaches. For this process bytes of that
// heap are read when the message is carried out. Other bytes are read into memory of this process,
// because a rank may be ended before the engine has read them.
void Outbound::put_long(u32 own, u32 process, WireMessage wire, char const* source, u32* done) {
  u64 const size = wire.message.bytes;
  if (auto const in_place =
          process != group_.number() ? writes_->in_place(own, source, size) : std::nullopt) {
    auto const out = queue_in_place(process, wire, in_place->memory);
    out->device = in_place->device;
    out->done = done;
    return;
  }
  if (process == group_.number() && layout_.devices[own]->in_host_memory() &&
      addresses_.in_heap(own, source, size))
    return each_piece(wire, [&](WireMessage const& message, u64 at, bool last) {
      auto const out = queue_in_place(process, message, source + at);
      if (last) out->done = done;
    });
  auto pieces = read_in_pieces(own, wire, source, [done] {
    if (done) memory::add(done, 1, Order::system);
  });
  if (!lost(process)) std::ranges::move(pieces, std::back_inserter(queues_[process]));
}

std::deque<OutgoingPtr> Outbound::read_in_pieces(u32 own, WireMessage const& wire,
                                                 char const* source,
                                                 std::function<void()> const& read) {
  std::deque<OutgoingPtr> pieces;
  each_piece(wire, [&](WireMessage const& message, u64 at, bool last) {
    u64 const size = message.message.bytes;
    auto const out = pieces.emplace_back(make(message, size));
    out->ready = false;
    auto take = [out, read = last ? read : nullptr](std::string_view bytes, Keep const& keep) {
      if (keep && bytes.size() > short_read) out->source = bytes.data(), out->keep = keep;
      else out->copy = bytes;
      out->ready = true;
      if (read) read();
    };
    hooks::at("read a source");
    own_.with_memory_of_ranks(own,
                              [&] { own_.access(own).read(source + at, size, std::move(take)); });
  });
  return pieces;
}

// For bytes that only the engine can read, but that must go in messages: the rest is read into
// memory of the host.
void Outbound::read_instead(std::deque<OutgoingPtr>& queue) {
  auto const out = queue.front();
  auto wire = out->wire;
  wire.message.address += out->sent;
  wire.position += out->sent;
  wire.message.bytes = out->size - out->sent;
  ++out->reading;
  auto pieces =
      read_in_pieces(*out->device, wire, out->source + out->sent, [this, out] { has_read(*out); });
  out->sent = out->size;
  queue.insert(queue.begin() + 1, pieces.begin(), pieces.end());
}

OutgoingPtr Outbound::take_for_here() {
  auto& queue = queues_[group_.number()];
  if (queue.empty() || !queue.front()->ready) return nullptr;
  auto const out = std::move(queue.front());
  queue.pop_front();
  return out;
}

bool Outbound::send() {
  bool any = false;
  for (u32 process = 0; process < queues_.size(); ++process) {
    if (process == group_.number()) continue;
    auto& queue = queues_[process];
    while (!queue.empty() && !lost(process)) {
      auto const out = queue.front();
      if (!out->ready || !send_next(process)) break;
      any = true;
      if (out->sent == out->size) queue.pop_front();
    }
  }
  return any;
}

// Sends a message with its next bytes. False: not now; the channel has no room, or must not write
// yet.
bool Outbound::send_next(u32 process) {
  using By = Writes::Way::By;
  auto const out = queues_[process].front();
  auto const way = out->written != 0 ? Writes::Way{} : writes_->way_of(process, *out);
  if (way.by == By::later) return false;
  if (way.by == By::message && out->device && out->written == 0)
    return read_instead(queues_[process]), true;
  if (way.by == By::write && !writes_->begin(process, out, way)) return false;
  bool const written = out->written != 0;
  u64 const size =
      written ? out->written : std::min<u64>(writes_->most_in_message(), out->rest().size());
  std::string_view payload = written ? std::string_view() : out->rest().substr(0, size);
  auto wire = out->wire;
  if (wire.has_bytes()) {
    wire.message.bytes = size;
    wire.message.address += out->sent;
    wire.position += out->sent;
    if (size != out->rest().size()) wire.message.signal = {};
  }
  if (written) {
    wire.written = out->slot ? WireMessage::Written::to_slot : WireMessage::Written::to_window;
    wire.slot = out->slot.value_or(0);
    wire.sum = out->sum;
  }
  u32 const sequence = channel_->next(process);
  auto const sent = send_message(process, wire,
                                 {.header = {},
                                  .bytes = payload,
                                  .source = out,
                                  .answer = wire.written == WireMessage::Written::to_window});
  if (sent == net::Channel::Sent::no) return false;
  if (sent == net::Channel::Sent::reading) ++out->reading;
  writes_->has_sent(process, sequence, wire);
  out->sent += size;
  out->written = 0;
  end_if_read(*out);
  return true;
}

net::Channel::Sent Outbound::send_message(u32 process, WireMessage& wire, net::Channel::Out out) {
  writes_->tell(process, wire);
  out.header = {reinterpret_cast<char const*>(&wire), sizeof wire};
  auto const sent = channel_->send(process, WireMessage::message_kind, out);
  if (sent != net::Channel::Sent::no) writes_->has_told(process, wire);
  return sent;
}

bool Outbound::tell_news(bool idle) {
  bool any = false;
  for (u32 process = 0; process < queues_.size(); ++process) {
    if (process == group_.number() || channel_->must_announce(process)) continue;
    if (!channel_->owes_news(process, idle) && !writes_->has_news(process)) continue;
    WireMessage wire;
    wire.run = run_;
    wire.message.type = WireMessage::Type::news;
    any |=
        send_message(process, wire, {.header = {}, .only_tells = true}) != net::Channel::Sent::no;
  }
  return any;
}

bool Outbound::is_empty() const {
  return std::ranges::all_of(queues_, [](auto const& queue) { return queue.empty(); });
}

void Outbound::has_carried_out(Outgoing& out) {
  out.sent = out.size;
  end_if_read(out);
}

void Outbound::has_read(Outgoing& out) {
  --out.reading;
  end_if_read(out);
}

// Tells the rank that its source may be changed.
void Outbound::end_if_read(Outgoing& out) {
  if (!out.done || out.reading != 0 || out.sent != out.size || !is_of_this_run(out.wire.run))
    return;
  driver_.begin_work();
  memory::add(std::exchange(out.done, nullptr), 1, Order::system);
}

}  // namespace meshpost::detail
