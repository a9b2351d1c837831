#include "net/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/caught.hpp"
#include "base/hash.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::net {
namespace {

// Messages that were carried out and that their sender has not been told of.
constexpr u32 news = 256, much_news = 1024;
static_assert(2 * much_news <= Channel::most_unheard);

[[noreturn]] void refuse(std::string cause) {
  throw Error(Kind::peer_lost, "receive a message", std::move(cause),
              "start the job again, with the same build in all processes; if it happens again, "
              "report it");
}

}  // namespace

struct Channel::Arrival {
  ChannelHeader header;
  std::string_view all;  // with the header
  Message message;
};

u64 check_of(ChannelHeader header, std::string_view client_header, std::string_view bytes) {
  std::array<char, sizeof header + Channel::most_header> all;
  header.check = (header.flags & ChannelHeader::summed) != 0 ? hash_of(bytes) : bytes.size();
  std::memcpy(all.data(), &header, sizeof header);
  client_header.copy(all.data() + sizeof header, client_header.size());
  return hash_of({all.data(), sizeof header + client_header.size()});
}

Channel::Channel(std::unique_ptr<Engine> engine, u32 peers)
    : peers_(peers), engine_(std::move(engine)) {}

Channel::~Channel() = default;

void Channel::serve(u32 kind, Client& client) {
  if (clients_.size() <= kind) clients_.resize(kind + 1);
  clients_[kind] = &client;
}

u64 Channel::most(u64 header_bytes) const {
  return engine_->most() - sizeof(ChannelHeader) - header_bytes;
}

// -- what goes

Channel::Sent Channel::send(u32 to, u32 kind, Out const& out) {
  auto const& peer = peers_[to];
  if (peer.lost || (peer.announces != 0 && peer.announces != kind)) return Sent::no;
  // The write has taken its message's credit.
  if (!out.only_tells && peer.announces == 0 && peer.next_out - peer.heard >= most_unheard)
    return Sent::no;
  ChannelHeader header{.kind = kind};
  if (out.answer) header.flags |= ChannelHeader::answer;
  return start(to, header, out);
}

Channel::Sent Channel::start(u32 to, ChannelHeader header, Out const& out) {
  auto& peer = peers_[to];
  if (out.header.size() > most_header)
    throw Error(Kind::bad_argument, "send a message",
                fmt::format("a header of {} bytes, at most {} fit", out.header.size(), most_header),
                "report it");
  header.sequence = peer.next_out;
  header.heard = peer.next_in;
  header.header_bytes = static_cast<u32>(out.header.size());
  if (peer.announces != 0) header.flags |= ChannelHeader::written;
  bool const is_short = out.bytes.size() <= short_bytes;
  if (is_short || !engine_->keeps_bytes()) header.flags |= ChannelHeader::summed;
  header.check = check_of(header, out.header, out.bytes);
  std::array<char, sizeof header + most_header + short_bytes> first;
  std::memcpy(first.data(), &header, sizeof header);
  u64 size = sizeof header + out.header.copy(first.data() + sizeof header, out.header.size());
  std::string_view rest = out.bytes;
  if (is_short) size += std::exchange(rest, {}).copy(first.data() + size, out.bytes.size());
  u64 const cookie = is_short ? 0 : ++last_cookie_;
  // Counted before: whoever sees that it has arrived must not find that it was never sent.
  peer.sent.fetch_add(1);
  sent_.fetch_add(1);
  if (!is_short) in_flight_[cookie] = {out.source, client_of(header.kind), std::nullopt};
  if (!engine_->send(to, std::span(first).first(size), rest, cookie)) {
    in_flight_.erase(cookie);
    peer.sent.fetch_sub(1);
    sent_.fetch_sub(1);
    return Sent::no;
  }
  ++peer.next_out;
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
bool Channel::poll() { return engine_->poll(*this); }

void Channel::arrives() {
  moved_.fetch_add(1, std::memory_order_relaxed);
  tell_clients([](Client& client) { client.on_arrival(); });
}

Channel::Arrival Channel::read(std::string_view all) const {
  Arrival come{};
  auto& header = come.header;
  if (all.size() < sizeof header)
    refuse(fmt::format("it sent {} bytes; a message has at least {}", all.size(), sizeof header));
  std::memcpy(&header, all.data(), sizeof header);
  come.all = all;
  auto const behind = all.substr(sizeof header);
  if (header.header_bytes > std::min<u64>(most_header, behind.size()))
    refuse("a message was changed on its way");
  come.message = {behind.substr(0, header.header_bytes), behind.substr(header.header_bytes),
                  (header.flags & ChannelHeader::written) != 0};
  if (header.check != check_of(header, come.message.header, come.message.bytes))
    refuse("a message was changed on its way");
  bool const odd = header.flags > ChannelHeader::all ||
                   (come.message.written && !come.message.bytes.empty()) ||
                   (header.kind == 0 && (behind.size() != 0 || come.message.written));
  if (odd || (header.kind != 0 && !client_of(header.kind)))
    refuse(fmt::format("it sent a message of kind {} with flags {}, which nobody here can read",
                       header.kind, header.flags));
  return come;
}

// The other end may be at fault: what it can't have heard it doesn't tell.
void Channel::hear(u32 from, u32 before) {
  auto& peer = peers_[from];
  if (static_cast<i32>(before - peer.heard) <= 0) return;
  if (before - peer.heard > peer.next_out - peer.heard)
    refuse(fmt::format("it tells of {} messages that nobody sent", before - peer.next_out));
  peer.heard = before;
  tell_clients([&](Client& client) { client.on_heard(from, before); });
}

void Channel::on_message(u32 from, std::span<char const> bytes) {
  auto& peer = peers_[from];
  if (peer.lost) return;
  arrives();
  try {
    auto const come = read({bytes.data(), bytes.size()});
    hear(from, come.header.heard);
    // The network keeps no order: it waits for its turn, or for bytes that are written.
    u32 const sequence = come.header.sequence, ahead = sequence - peer.next_in;
    bool const now = ahead == 0 && !peer.early.contains(sequence) && has_landed(peer, come.header);
    if (now) apply(from, come);
    else if (ahead > 2 * most_unheard && ahead <= ~u32{0} / 2)
      refuse(fmt::format("it is {} messages ahead, and may be {}", ahead, most_unheard));
    else if (ahead > ~u32{0} / 2 || !peer.early.emplace(sequence, std::string(come.all)).second)
      refuse("a message came twice");
    apply_early(from);
  } catch (...) {
    on_lost(from, caught("receive a message").cause());
  }
}

void Channel::on_data(u32 from, u32 data) {
  auto& peer = peers_[from];
  if (peer.lost) return;
  arrives();
  ++peer.writes_landed;
  try {
    if (data - peer.next_in > ~u32{0} / 2 || !peer.landed.insert(data).second)
      refuse("it told twice that the bytes of a message are written");
    apply_early(from);
  } catch (...) {
    on_lost(from, caught("receive a message").cause());
  }
}

bool Channel::has_landed(Peer const& peer, ChannelHeader const& header) {
  return (header.flags & ChannelHeader::written) == 0 || peer.landed.contains(header.sequence);
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

void Channel::apply(u32 from, Arrival const& come) {
  auto& peer = peers_[from];
  ++peer.next_in;
  if ((peer.landed.erase(come.header.sequence) != 0) != come.message.written)
    refuse("it told that the bytes of a message are written which has them with it");
  peer.waits |= (come.header.flags & ChannelHeader::answer) != 0;
  if (come.header.kind != 0) client_of(come.header.kind)->on_message(from, come.message);
  peer.received.fetch_add(1, std::memory_order_release);
  received_.fetch_add(1, std::memory_order_release);
}

void Channel::on_lost(u32 from, std::string const& why) {
  auto& peer = peers_[from];
  if (std::exchange(peer.lost, true)) return;
  peer.early.clear();
  peer.landed.clear();
  tell_clients([&](Client& client) { client.on_lost(from, why); });
}

Channel::Traffic Channel::traffic(u32 peer) const {
  return {peers_[peer].sent.load(), peers_[peer].received.load(std::memory_order_acquire)};
}

Channel::Traffic Channel::traffic() const {
  return {sent_.load(std::memory_order_acquire), received_.load(std::memory_order_acquire)};
}

}  // namespace meshpost::net
