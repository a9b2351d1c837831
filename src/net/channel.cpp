#include "net/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/caught.hpp"
#include "meshpost/base/error.hpp"
#include "net/watched.hpp"

namespace meshpost::net {
namespace {

// Messages that were carried out and that their sender has not been told of.
constexpr u32 news = 256, much_news = 1024;
static_assert(2 * much_news <= Channel::most_unheard);

}  // namespace

Channel::Channel(std::unique_ptr<Engine> engine, u32 peers, Losing losing)
    : losing_(losing),
      rounds_(engine->outlives_peers() ? losing.patience : Rounds::longest),
      engine_(std::make_unique<Watched>(std::move(engine), rounds_)) {
  for (u32 peer = 0; peer < peers; ++peer) peers_.emplace_back(losing.patience);
}

Channel::~Channel() = default;

void Channel::serve(u32 kind, Client& client) {
  if (clients_.size() <= kind) clients_.resize(kind + 1);
  clients_[kind] = &client;
}

void Channel::begin_at(u32 sequence) {
  for (auto& peer : peers_)
    peer.next_out = peer.next_in = peer.heard = peer.told = peer.of_client = peer.last_of_client =
        peer.claimed = sequence;
}

u64 Channel::most(u64 header_bytes) const {
  return engine_->most() - sizeof(FrameHeader) - header_bytes;
}

// -- what goes

Channel::Sent Channel::send(u32 to, u32 kind, Out const& out) {
  auto const& peer = peers_[to];
  if (peer.lost || (peer.announces != 0 && peer.announces != kind)) return Sent::no;
  // The write has taken its message's credit.
  if (!out.only_tells && peer.announces == 0 && peer.next_out - peer.heard >= most_unheard)
    return Sent::no;
  FrameHeader header{.kind = kind};
  if (out.answer) header.flags |= FrameHeader::answer;
  return start(to, header, out);
}

Channel::Sent Channel::start(u32 to, FrameHeader header, Out const& out) {
  auto& peer = peers_[to];
  header.sequence = peer.next_out;
  header.heard = peer.next_in;
  if (peer.announces != 0) header.flags |= FrameHeader::written;
  if (!engine_->keeps_bytes()) header.flags |= FrameHeader::summed;
  FrameOut const frame(header, out.header, out.bytes);
  bool const is_short = frame.rest().empty();
  u64 const cookie = is_short ? 0 : ++last_cookie_;
  // Counted before: whoever sees that it has arrived must not find that it was never sent.
  peer.sent.fetch_add(1);
  sent_.fetch_add(1);
  if (!is_short) in_flight_[cookie] = {out.source, client_of(header.kind), std::nullopt};
  if (!engine_->send(to, frame.copied(), frame.rest(), cookie)) {
    in_flight_.erase(cookie);
    peer.sent.fetch_sub(1);
    sent_.fetch_sub(1);
    return Sent::no;
  }
  ++peer.next_out;
  if (header.kind != 0) peer.last_of_client = peer.next_out;
  peer.announces = 0;
  peer.told = header.heard;
  peer.waits = false;
  return is_short ? Sent::copied : Sent::reading;
}

bool Channel::write(u32 to, u32 kind, std::string_view bytes, RemoteMemory const& target,
                    u64 offset, std::shared_ptr<void> source) {
  auto& peer = peers_[to];
  if (peer.lost || peer.announces != 0 || !may_write(to) ||
      peer.next_out - peer.heard >= most_unheard)
    return false;
  u64 const cookie = ++last_cookie_;
  in_flight_[cookie] = {std::move(source), client_of(kind), to};
  if (!engine_->write(to, bytes, target, offset, peer.next_out, cookie)) {
    in_flight_.erase(cookie);
    return false;
  }
  peer.announces = kind;
  ++peer.writing;
  ++peer.writes_begun;
  return true;
}

void Channel::on_done(u64 cookie) {
  auto const found = in_flight_.find(cookie);
  if (found == in_flight_.end()) return;
  auto const flight = std::move(found->second);
  in_flight_.erase(found);
  moved_.fetch_add(1, std::memory_order_relaxed);
  if (flight.writes_to) --peers_[*flight.writes_to].writing;
  if (flight.client) flight.client->on_read(flight.source);
}

bool Channel::owes_news(u32 from, bool idle) const {
  auto const& peer = peers_[from];
  u32 const untold = peer.next_in - peer.told;
  return !peer.lost && peer.announces == 0 &&  // else the next message is another's
         (untold >= much_news || (idle && (peer.waits || untold >= news)));
}

bool Channel::tell(bool idle) {
  bool any = false;
  for (u32 peer = 0; peer < peers_.size(); ++peer)
    any |= owes_news(peer, idle) && start(peer, {}, {.header = {}}) != Sent::no;
  return any;
}

// -- what comes

// What an engine does for itself, such as greetings, moves nothing.
bool Channel::poll() {
  bool const looks = is_time_to_look();
  bool any = looks && take_notices();  // before: the engine's round may be long
  any |= engine_->poll(*this);
  if (looks) any |= look_for_losses();  // behind: what has come is not missing
  return any;
}

// In a handler: what was thrown says why. The reason goes to other processes, so it names this one
// by its number.
void Channel::refuse(u32 from) {
  on_lost(from, fmt::format("a message of process {} was refused: {}", from,
                            caught("receive a message").cause()));
}

void Channel::arrives() {
  moved_.fetch_add(1, std::memory_order_relaxed);
  tell_clients([](Client& client) { client.on_arrival(); });
}

FrameIn Channel::read(std::string_view all) const {
  auto const come = FrameIn::read(all);
  if (come.header.kind != 0 && !client_of(come.header.kind))
    refuse_message(fmt::format("no client serves its kind {}", come.header.kind));
  return come;
}

// The other end may be at fault: what it can't have heard it doesn't tell.
void Channel::hear(u32 from, u32 before) {
  auto& peer = peers_[from];
  if (static_cast<i32>(before - peer.heard) <= 0) return;
  if (before - peer.heard > peer.next_out - peer.heard)
    refuse_message(fmt::format("it tells that {} more were carried out than were sent",
                               before - peer.next_out));
  peer.heard = before;
  tell_clients([&](Client& client) { client.on_heard(from, before); });
}

void Channel::on_message(u32 from, std::span<char const> bytes) {
  auto& peer = peers_[from];
  if (peer.lost) return;
  peer.spoke = true;
  arrives();
  try {
    auto const come = read({bytes.data(), bytes.size()});
    hear(from, come.header.heard);
    // The network keeps no order: it waits for its turn, or for bytes that are written.
    u32 const sequence = come.header.sequence, ahead = sequence - peer.next_in;
    bool const now = ahead == 0 && !peer.early.contains(sequence) && has_landed(peer, come.header);
    if (now) apply(from, come);
    else if (ahead > 2 * most_unheard && ahead <= ~u32{0} / 2)
      refuse_message(fmt::format("it is {} messages ahead; at most {} may be unanswered", ahead,
                                 most_unheard));
    else if (ahead > ~u32{0} / 2 ||
             !peer.early.emplace(sequence, std::string(bytes.begin(), bytes.end())).second)
      refuse_message("it came twice");
    apply_early(from);
  } catch (...) {
    refuse(from);
  }
}

void Channel::on_data(u32 from, u32 data) {
  auto& peer = peers_[from];
  if (peer.lost) return;
  peer.spoke = true;
  arrives();
  ++peer.writes_landed;
  try {
    if (data - peer.next_in > ~u32{0} / 2 || !peer.landed.insert(data).second)
      refuse_message("its bytes were written twice");
    apply_early(from);
  } catch (...) {
    refuse(from);
  }
}

bool Channel::has_landed(Peer const& peer, FrameHeader const& header) {
  return (header.flags & FrameHeader::written) == 0 || peer.landed.contains(header.sequence);
}

void Channel::apply_early(u32 from) {
  auto& peer = peers_[from];
  for (;;) {
    auto const next = peer.early.find(peer.next_in);
    if (next == peer.early.end()) return;
    auto const come = read(next->second);
    if (!has_landed(peer, come.header)) return;
    auto const kept = peer.early.extract(next);
    apply(from, come);
  }
}

void Channel::apply(u32 from, FrameIn const& come) {
  auto& peer = peers_[from];
  ++peer.next_in;
  if ((peer.landed.erase(come.header.sequence) != 0) != come.has(FrameHeader::written))
    refuse_message("its bytes should be written or be with it, and are both or neither");
  peer.waits |= (come.header.flags & FrameHeader::answer) != 0;
  if (come.header.kind != 0) peer.of_client = peer.next_in;
  if (come.header.kind != 0)
    client_of(come.header.kind)
        ->on_message(from, {come.client_header, come.bytes, come.has(FrameHeader::written)});
  peer.received.fetch_add(1, std::memory_order_release);
  received_.fetch_add(1, std::memory_order_release);
}

Channel::Traffic Channel::traffic(u32 peer) const {
  return {peers_[peer].sent.load(), peers_[peer].received.load(std::memory_order_acquire)};
}

Channel::Traffic Channel::traffic() const {
  return {sent_.load(std::memory_order_acquire), received_.load(std::memory_order_acquire)};
}

}  // namespace meshpost::net
