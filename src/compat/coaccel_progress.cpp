// The thread of COACCEL's network: blocks of messages that leave and arrive, and what ends them.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/caught.hpp"
#include "base/pauses.hpp"
#include "compat/coaccel_network.hpp"
#include "meshpost/copy/copy.hpp"
#include "world/wire.hpp"

namespace meshpost::coaccel {
namespace {

constexpr u64 block_bytes = u64{256} << 10;
constexpr std::size_t blocks_at_once = 8;  // so memory for them is limited
// Also while no link is open: blocks for a link that was closed must arrive, or their sender, who
// has room for a few, sends to nobody any more.
constexpr std::chrono::milliseconds idle{1}, without_links{10}, between_looks{10};

// Copies bytes of a message, from `offset` on, from or to a block.
void copy_block(Message const& message, Way way, u64 offset, std::span<char> block) {
  std::vector<Segment> by_device;
  char* at = block.data();
  u64 left = block.size();
  for (auto const& part : message.parts) {
    if (left == 0) break;
    if (offset >= part.size) {
      offset -= part.size;
      continue;
    }
    u64 const size = std::min(part.size - offset, left);
    Segment const move = way == Way::out ? Segment{at, part.at + offset, Bytes{size}}
                                         : Segment{part.at + offset, at, Bytes{size}};
    if (part.on_host) std::memcpy(move.target, move.source, size);
    else by_device.push_back(move);
    at += size, left -= size, offset = 0;
  }
  if (!by_device.empty()) copy_batch(by_device).wait();
}

Error closed_by(LinkKey const& key, u32 own) {
  return Error(Kind::peer_lost, name_of(key),
               fmt::format("process {} has closed its mpi:{}:{}", key.process, own, key.id),
               "let it close the device after its last copy; to go on, close and open it in both");
}

}  // namespace

void Network::work() {
  Pauses pauses;
  for (;; pauses.rest()) {
    std::unique_lock lock(mutex_);
    if (!ended_.empty()) return;
    if (waiting_ == 0 && outbox_.empty())
      wake_.wait_for(lock, links_.empty() && in_flight_.empty() ? without_links : idle);
    if (!ended_.empty()) return;
    if (std::exchange(started_, false)) pauses.renew();
    try {
      if (step()) pauses.renew();
    } catch (...) {
      auto const error = caught("serve COACCEL's MPI devices");
      for (auto& [key, link] : links_) fail(key, link, error, true);
    }
  }
}

bool Network::step() {
  bool any = engine_->poll(*this);
  any |= send_in_turn();
  flush();
  if (auto const now = std::chrono::steady_clock::now(); now - looked_ >= between_looks) {
    looked_ = now;
    look_at_deadlines();
  }
  return any;
}

// A block of each link in turn, from the one behind the last on: each makes progress, however long
// the others' messages are.
bool Network::send_in_turn() {
  bool any = false;
  for (std::size_t without = 0; without < links_.size() && has_room();) {
    auto next = links_.upper_bound(last_);
    if (next == links_.end()) next = links_.begin();
    last_ = next->first;
    bool const sent = send_block(next->first, next->second);
    any |= sent;
    without = sent ? 0 : without + 1;
  }
  return any;
}

bool Network::has_room() const { return in_flight_.size() + outbox_.size() < blocks_at_once; }

bool Network::send_block(LinkKey const& key, Link& link) {
  u64 const most = std::min<u64>(block_bytes, engine_->most() - sizeof(Header));
  if (link.failure) return false;
  for (auto const& pending : link.out.pending) {
    auto& message = *pending;
    auto const ready = link.ready.find(message.number);
    if (ready == link.ready.end() || (message.begun && message.moved == message.size)) continue;
    if (ready->second != message.size) {
      fail(key, link,
           Error(Kind::bad_argument, name_of(key),
                 fmt::format("copy {} from process {} to process {} has {} bytes at its source and "
                             "{} at its target",
                             message.number, own_, key.process, message.size, ready->second),
                 "give both calls pieces with the same sum of sizes, in the same order of calls"),
           true);
      return true;
    }
    Header header{Says::data, key.id, key.opening, message.number, 0, message.moved};
    header.size = std::min(most, message.size - message.moved);
    auto const block = std::make_shared_for_overwrite<char[]>(header.size);
    try {
      copy_block(message, Way::out, message.moved, {block.get(), header.size});
    } catch (...) {
      fail(key, link, caught("send to " + name_of(key)), true);
      return true;
    }
    outbox_.push_back({key.process, header, block, header.size});
    message.begun = true;
    message.moved += header.size;
    ++link.out.progress;
    flush();
    return true;
  }
  return false;
}

bool Network::flush() {
  if (!engine_) outbox_.clear();  // after end()
  for (; !outbox_.empty(); outbox_.pop_front()) {
    auto const& one = outbox_.front();
    if (lost_.contains(one.peer)) continue;
    u64 const cookie = ++cookies_;
    if (!engine_->send(one.peer, {reinterpret_cast<char const*>(&one.header), sizeof one.header},
                       {one.bytes.get(), one.size}, cookie))
      return false;
    if (one.size != 0) in_flight_[cookie] = one.bytes;
  }
  return true;
}

void Network::say(LinkKey const& key, Says what, u64 number, u64 size) {
  outbox_.push_back({key.process, {what, key.id, key.opening, number, size, 0}, {}, 0});
}

void Network::on_message(u32 peer, std::span<char const> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  LinkKey const key{peer, header.id, header.opening};
  if (auto const found = links_.find(key); found != links_.end())
    return take(key, found->second, header, bytes);
  // Bytes come only to links that are ready for them.
  if (header.opening > opened_[{peer, header.id}] && header.says != Says::data)
    early_[key].push_back({header, {bytes.begin(), bytes.end()}});
}

void Network::take(LinkKey const& key, Link& link, Header const& header,
                   std::span<char const> bytes) {
  if (link.failure) return;
  switch (header.says) {
    case Says::ready:
      link.ready[header.number] = header.size;
      ++link.out.progress;
      return;
    case Says::data: return take_data(key, link, header, bytes);
    case Says::taken: link.ready.erase(header.number); return finish(link.out, header.number);
    case Says::failed:
      return fail(key, link, wire::unpack_error({bytes.data(), bytes.size()}), false);
    case Says::closed:
      while (!link.out.pending.empty() && link.out.pending[0]->number < header.number)
        finish(link.out, link.out.pending[0]->number);
      return fail(key, link, closed_by(key, own_), false);
  }
}

void Network::take_data(LinkKey const& key, Link& link, Header const& header,
                        std::span<char const> bytes) {
  auto const& pending = link.in.pending;
  auto const found = std::ranges::find(pending, header.number,
                                       [](auto const& message) { return message->number; });
  if (found == pending.end() || header.size != bytes.size() || header.offset > (*found)->size ||
      header.size > (*found)->size - header.offset)
    return fail(key, link,
                Error(Kind::peer_lost, name_of(key),
                      fmt::format("process {} sent {} bytes at {} of copy {}, which nobody expects",
                                  key.process, bytes.size(), header.offset, header.number),
                      "let both processes run the same build"),
                true);
  auto& message = **found;
  try {
    copy_block(message, Way::in, header.offset, {const_cast<char*>(bytes.data()), bytes.size()});
  } catch (...) {
    return fail(key, link, caught("receive from " + name_of(key)), true);
  }
  message.moved += header.size;
  ++link.in.progress;
  if (message.moved < message.size) return;
  say(key, Says::taken, message.number);
  finish(link.in, message.number);
}

void Network::finish(Side& side, u64 number) {
  auto const found =
      std::ranges::find(side.pending, number, [](auto const& message) { return message->number; });
  if (found == side.pending.end()) return;
  (*found)->over = true;
  side.pending.erase(found);
  ++side.progress;
  --waiting_;
  changed_.notify_all();
}

void Network::fail(LinkKey const& key, Link& link, Error const& error, bool tell) {
  if (link.failure) return;
  link.failure = error;
  for (auto* const side : {&link.out, &link.in}) {
    waiting_ -= side->pending.size();
    for (auto const& message : std::exchange(side->pending, {})) {
      message->error = error;
      message->over = true;
    }
  }
  changed_.notify_all();
  if (!tell) return;
  auto const text = wire::pack(Error(error.kind(), fmt::format("process {}", own_),
                                     error.operation() + ": " + error.cause(), error.remedy()));
  u64 const size = std::min<u64>(text.size(), engine_->most() - sizeof(Header));
  auto const bytes = std::make_shared_for_overwrite<char[]>(size);
  std::memcpy(bytes.get(), text.data(), size);
  outbox_.push_back({key.process, {Says::failed, key.id, key.opening, 0, size, 0}, bytes, size});
}

void Network::on_lost(u32 peer, std::string const& why) {
  lost_[peer] = why;
  for (auto& [key, link] : links_)
    if (key.process == peer)
      fail(key, link,
           Error(Kind::peer_lost, name_of(key), fmt::format("process {} is lost: {}", peer, why),
                 "see its log; restart the job"),
           false);
}

Error Network::late(LinkKey const& key, Way way, Side const& side) const {
  auto const& message = *side.pending.front();
  bool const out = way == Way::out;
  bool const matched = message.moved > 0 || message.begun;
  return Error(
      Kind::deadline, name_of(key),
      fmt::format("copy {} of {} bytes {} process {} made no progress for {} ({})", message.number,
                  message.size, out ? "to" : "from", key.process, side.deadline.text(),
                  matched ? fmt::format("{} bytes have {}", message.moved, out ? "left" : "come")
                          : "the other process has not begun it"),
      fmt::format("let process {} copy {} its mpi:{}:{}; MESHPOST_DEADLINE (seconds) allows longer "
                  "computations",
                  key.process, out ? "from" : "to", own_, key.id));
}

void Network::look_at_deadlines() {
  for (auto& [key, link] : links_)
    for (auto const way : {Way::out, Way::in}) {
      auto& side = way == Way::out ? link.out : link.in;
      if (side.pending.empty()) side.deadline.renew();
      else if (side.deadline.ends(side.progress) && !watched_by_debugger(side.deadline))
        fail(key, link, late(key, way, side), true);
    }
}

}  // namespace meshpost::coaccel
