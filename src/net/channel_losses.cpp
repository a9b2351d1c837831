// How a channel notices that messages are lost or that its engine hangs, and tells the other end.
// This is the only place for both.
//
// A message that is wrong is noticed when it comes (frame.cpp, channel.cpp), and a peer that is
// gone by the engine. Two things make no event: a message that never comes, and an engine that
// never returns.
//
// Messages that never come. The receiver finds out, because it alone knows whether it has looked: a
// sender that hears nothing can't tell a lost message from a receiver that is busy. A message is
// missing if a later one is here, or its bytes are, or if the sender says by OutOfBand that it has
// sent more than came. The sender says so when a client's message was not heard of for a quarter of
// the patience. If a missing message does not come within the patience, its sender is lost.
//
// Time counts only while both ends look. The receiver may be away (Patience). The sender may be
// away too, and its engine may get on only while it polls: then the message is not lost, but still
// there. A sender that looks says every quarter of the patience that it has not been heard. So time
// counts for half the patience after a sign of life. A sender that never looks again is lost when
// its process is (world), or ends for another reason.
//
// OutOfBand goes through process 0, so it is kept for what can't be said by a message. A receiver
// that has nothing else to say tells by a message what it has carried out, after an eighth of the
// patience. Then the sender has no need to ask.
//
// A loss is noticed at one end. The other end would wait for ever, so it is told by OutOfBand, with
// the reason. Both ends drop what comes from each other afterwards.
//
// Engines that never return. libfabric's shm (1.17) guards the queue of each process by a spin lock
// in shared memory. A process that is killed with a lock leaves it taken, and whoever wants it
// spins for ever, in any of the engine's functions. No thread can be taken out of there. So every
// call of the engine is a round (Watched), and a supervisor that knows of a lost process takes away
// a round that lasts too long (Rounds): half a second in such an engine, and the patience in one
// whose calls come back whoever is killed (Engine::outlives_peers). If the thread comes back later,
// it stays in Watched for ever. The channel and all that the engine may touch must then be kept
// until the process ends.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "meshpost/base/error.hpp"
#include "net/channel.hpp"

namespace meshpost::net {
namespace {

// The first byte of a notice.
constexpr char says_lost = 'L';  // the reason follows
constexpr char says_sent = 'S';  // how many messages it has sent, a u32 that wraps

constexpr auto between_looks = std::chrono::milliseconds(5);

u32 ahead(u32 one, u32 other) {  // of numbers that wrap; 0: it is not
  auto const by = static_cast<i32>(one - other);
  return by > 0 ? static_cast<u32>(by) : 0;
}

// Of a pause between two looks little counts, compared with the whole.
Patience patience_of(std::chrono::milliseconds length) {
  return Patience(length, std::min(Patience::usual_gap, length / 4));
}

}  // namespace

Channel::Peer::Peer(std::chrono::milliseconds patience)
    : comes(patience_of(patience)),
      is_heard(patience_of(patience / 4)),
      is_told(patience_of(patience / 8)) {}

void Channel::tell(u32 peer, std::string const& notice) {
  if (losing_.out_of_band) try {
      losing_.out_of_band->tell(peer, notice);
    } catch (Error const&) {
      return;  // no notice comes from here or to here any more: who serves a channel ends it then
    }
}

void Channel::on_lost(u32 from, std::string const& why) {
  if (peers_[from].lost) return;
  tell(from, says_lost + why);
  end_with(from, why);
}

void Channel::end_with(u32 from, std::string const& why) {
  auto& peer = peers_[from];
  if (std::exchange(peer.lost, true)) return;
  peer.early.clear();
  peer.landed.clear();
  tell_clients([&](Client& client) { client.on_lost(from, why); });
}

void Channel::lose_all(std::string const& why) {
  for (u32 peer = 0; peer < peers_.size(); ++peer) on_lost(peer, why);
}

bool Channel::is_time_to_look() {
  if (!losing_.out_of_band) return false;
  auto const now = Patience::Clock::now();
  if (now - looked_ < between_looks) return false;
  looked_ = now;
  return true;
}

bool Channel::take_notices() {
  bool any = false;
  for (auto const& [from, bytes] : losing_.out_of_band->take()) any |= take_notice(from, bytes);
  return any;
}

bool Channel::look_for_losses() {
  auto const now = Patience::Clock::now();
  bool any = false;
  for (u32 peer = 0; peer < peers_.size(); ++peer)
    if (!peers_[peer].lost) any |= look_at(peer, now);
  return any;
}

bool Channel::take_notice(u32 from, std::string_view bytes) {
  if (from >= peers_.size() || peers_[from].lost || bytes.empty()) return false;
  auto& peer = peers_[from];
  peer.spoke = true;
  auto const rest = bytes.substr(1);
  if (bytes[0] == says_lost) {
    end_with(from, fmt::format("process {} has ended the connection: {}", from, rest));
    return true;
  }
  u32 sent = 0;
  if (bytes[0] != says_sent || rest.size() != sizeof sent) return false;
  std::memcpy(&sent, rest.data(), sizeof sent);
  if (ahead(sent, peer.claimed) != 0) peer.claimed = sent;
  peer.waits = true;  // it wants to hear what was carried out
  return false;
}

bool Channel::look_at(u32 other, Patience::Clock::time_point now) {
  auto& peer = peers_[other];
  // Also where it says nothing for 2^31 messages.
  if (ahead(peer.next_in, peer.claimed) != 0) peer.claimed = peer.next_in;
  u32 const claimed = ahead(peer.claimed, peer.next_in);
  bool const missing = claimed != 0 || !peer.early.empty() || !peer.landed.empty();
  if (std::exchange(peer.spoke, false)) peer.spoke_at = now;
  if (!missing) peer.comes.renew(now);
  else if (now - peer.spoke_at > losing_.patience / 2) peer.comes.skip(now);
  else if (peer.comes.ends(peer.next_in, now)) {
    on_lost(other,
            fmt::format("the network lost message {} of process {}: that process has sent it "
                        "or a later one, and nothing came for {} ({})",
                        peer.next_in, other, peer.comes.text(), peer_deadline));
    return true;
  }
  if (ahead(peer.of_client, peer.told) == 0) peer.is_told.renew(now);
  else if (peer.is_told.ends(peer.next_in, now)) {
    peer.is_told.renew(now);
    peer.waits = true;
  }
  if (ahead(peer.last_of_client, peer.heard) == 0) peer.is_heard.renew(now);
  else if (peer.is_heard.ends(peer.heard, now)) {
    peer.is_heard.renew(now);
    std::string notice(1 + sizeof peer.next_out, says_sent);
    std::memcpy(notice.data() + 1, &peer.next_out, sizeof peer.next_out);
    tell(other, notice);
  }
  return false;
}

bool Channel::take_if_it_hangs() {
  if (rounds_.take_if_long()) engine_->abandon();
  return rounds_.taken();
}

Error Channel::hang_error(Error const& loss, std::string const& whose,
                          std::string const& user) const {
  return {loss.kind(), loss.operation(),
          fmt::format("{}; and a thread of {} does not come back from {}, so its {} is of no more "
                      "use",
                      loss.cause(), whose, engine_->name(), user),
          loss.remedy()};
}

}  // namespace meshpost::net
