#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/patience.hpp"
#include "meshpost/base/error.hpp"
#include "net/engine.hpp"
#include "net/frame.hpp"
#include "net/out_of_band.hpp"
#include "net/rounds.hpp"

namespace meshpost::net {

/// How a channel learns of losses (channel_losses.cpp).
struct Losing {
  /// Tells the other end of a loss; it outlives the channel. Null: the client does, and messages
  /// may be missing for ever.
  OutOfBand* out_of_band = nullptr;
  /// With a missing message, and with a thread that stays in an engine that outlives its peers; 0:
  /// for ever.
  std::chrono::milliseconds patience{0};
};

/// Messages between the processes of a job, whole and in order, over an engine that keeps no order.
///
/// - **Order and loss.** Each pair of processes and each direction has its own sequence numbers. A
///   message that comes early is kept until those before it have come. One that comes twice, that
///   was changed on its way, or that is no message makes its sender lost: nothing more comes from
///   it or goes to it. A message that the network has lost holds up all behind it. It makes its
///   sender lost after the patience (`Losing`). Without one, whoever waits finds that nothing moves
///   (`moved`).
/// - **Delivery.** A client is told of a message when it has been told of all that were sent to
///   this process before, and when the bytes that were written with those are in place. What a
///   client stores in on_message() and then releases (a counter behind bytes) therefore covers all
///   that its peer sent before.
/// - **Writes.** Long bytes go straight into exposed memory: write(), then send() of the message
///   that announces them. The engine tells the receiver the message's sequence number with the last
///   byte. The message goes on its own. The receiver's client is told when both have come. Bytes
///   may land before the message's turn. So nobody may use their place until then, and the sender
///   must not begin a write over bytes of an earlier message before that was heard().
/// - **Credits.** At most `most_unheard` messages to a peer may be sent and not known to be carried
///   out. So a receiver that is slow or stopped keeps that many, and no more. Messages with
///   Out::only_tells are not held up by it, so that two full channels can still answer each other.
/// - **Check sums.** A header is always covered, and bytes are, unless the engine keeps them as
///   they are (Engine::keeps_bytes). Networks check too, but not all of them from one process's
///   memory to the other's: TCP from end to end with 16 bits, Ethernet and InfiniBand with 32, from
///   one switch to the next or in all. Bytes of a write are the client's to check.
///
/// One thread at a time, but for what is said to be for any.
class Channel final : Events {
 public:
  struct Message {
    std::string_view header;  ///< the client's; valid during the call
    std::string_view bytes;   ///< likewise; empty if they were written
    bool written = false;
  };
  /// Who sends and receives messages of one kind. What on_message() or on_heard() throws makes the
  /// sender lost; the others throw nothing.
  class Client {
   public:
    virtual ~Client() = default;
    /// Before anything that has come is looked at, in its turn or not.
    virtual void on_arrival() {}
    virtual void on_message(u32 peer, Message const& message) = 0;
    /// All messages to this peer before that sequence number have been carried out there. Again and
    /// again; older news than was told before is left out.
    virtual void on_heard(u32 /*peer*/, u32 /*before*/) {}
    /// The engine has read a message's or a write's source, which may change now.
    virtual void on_read(std::shared_ptr<void> const& /*source*/) {}
    /// Once for each peer. `why` may come from another process: it names processes by numbers.
    virtual void on_lost(u32 peer, std::string const& why) = 0;
  };

  Channel(std::unique_ptr<Engine> engine, u32 peers, Losing losing = {});
  ~Channel() override;
  Channel(Channel const&) = delete;
  Channel& operator=(Channel const&) = delete;

  Engine& engine() { return *engine_; }
  Engine const& engine() const { return *engine_; }
  /// Messages of this kind, not 0, are that client's. Before the first poll().
  void serve(u32 kind, Client& client);

  static constexpr u32 most_unheard = 4096;
  static constexpr u32 most_writes = 16;  ///< at once to a peer: others need operations, too
  /// Bytes that fit into a message behind a header of this size.
  u64 most(u64 header_bytes) const;

  struct Out {
    std::string_view header;
    std::string_view bytes{};
    std::shared_ptr<void> source{};  ///< of bytes that are not short; kept until they are read
    bool answer = false;             ///< see FrameHeader::answer
    bool only_tells = false;         ///< needs no credit
  };
  enum class Sent {
    no,       ///< not now: no room, no credit, another message must be the next, or the peer is
              ///< lost. Poll, then try again
    copied,   ///< all of it
    reading,  ///< the source is being read: on_read() follows
  };
  Sent send(u32 peer, u32 kind, Out const& out);
  /// Starts to write bytes, all of `source`. Then the next message to this peer must be the one
  /// that announces them. on_read() follows. False as Sent::no, or too many are under way.
  bool write(u32 peer, u32 kind, std::string_view bytes, RemoteMemory const& target, u64 offset,
             std::shared_ptr<void> source);
  bool may_write(u32 peer) const { return peers_[peer].writing < most_writes; }
  /// Whether a write to it is not announced yet.
  bool must_announce(u32 peer) const { return peers_[peer].announces != 0; }

  /// Gets on. Whether anything has happened.
  bool poll();
  /// Whether this peer should hear now what was carried out of its messages. `idle`: there is
  /// nothing else to do. Any message tells it.
  bool owes_news(u32 peer, bool idle) const;
  /// Sends a message for that alone to those peers that should hear. Whether any was sent.
  bool tell(bool idle);

  /// For tests, at both ends before the first message: numbers begin here instead of at 0.
  void begin_at(u32 sequence);
  /// The next message's sequence number.
  u32 next(u32 peer) const { return peers_[peer].next_out; }
  /// Messages from there that have been carried out; wraps, as sequence numbers do.
  u32 carried_out(u32 peer) const { return peers_[peer].next_in; }
  bool lost(u32 peer) const { return peers_[peer].lost; }
  /// Takes a peer for lost. It is told why, so the reason must name processes by their numbers:
  /// "it" and "here" would be others there.
  void lose(u32 peer, std::string const& why) { on_lost(peer, why); }
  /// All of them. The channel is of no more use. Enters no engine.
  void lose_all(std::string const& why);
  /// Whether the engine reads no source.
  bool reads_nothing() const { return in_flight_.empty(); }
  /// Writes to and from a peer, in all.
  u64 writes_begun(u32 peer) const { return peers_[peer].writes_begun; }
  u64 writes_landed(u32 peer) const { return peers_[peer].writes_landed; }

  /// Messages to and from one peer, in all; any thread. What a peer has carried out was counted as
  /// sent before.
  struct Traffic {
    u64 sent = 0, received = 0;
  };
  Traffic traffic(u32 peer) const;
  Traffic traffic() const;  ///< with all peers
  /// Changes whenever something has come, or was read. Any thread.
  u64 moved() const { return moved_.load(std::memory_order_relaxed); }

  // By supervisors, in other threads than the channel's.
  /// To be called again and again while a process is lost: whether the thread is blocked in the
  /// engine for so long that it is given up. Then the channel is the supervisors', must not be used
  /// to send or poll, and is kept for ever with its clients.
  bool take_if_it_hangs();
  bool hangs() const { return rounds_.taken(); }
  /// What ends operations then. `loss`: of the process; `user`: of the channel, as "World".
  Error hang_error(Error const& loss, std::string const& whose, std::string const& user) const;

 private:
  struct Peer {
    explicit Peer(std::chrono::milliseconds patience);
    u32 next_out = 0, next_in = 0;
    u32 heard = 0;       // messages to it that are known to be carried out
    u32 told = 0;        // it knows that those from it before this one are,
    bool waits = false;  // and may wait to hear more
    u32 of_client = 0;   // messages from it before this one are clients', or older than those
    u32 announces = 0;  // kind of the message that must be the next, as its bytes are being written
    bool lost = false;
    u32 last_of_client = 0;  // messages to it before this one are clients', or older than those
    u32 claimed = 0;         // messages that it says it has sent
    bool spoke = false;      // since the last look: a message or a notice has come
    Patience::Clock::time_point spoke_at{};
    Patience comes, is_heard, is_told;
    std::map<u32, std::string>
        early;             // messages that came before their turn, or before their bytes
    std::set<u32> landed;  // messages whose bytes are written, and which have not come
    u32 writing = 0;       // by the engine, at once
    u64 writes_begun = 0, writes_landed = 0;
    std::atomic<u64> sent{0}, received{0};
  };
  struct Flight {
    std::shared_ptr<void> source;
    Client* client;
    std::optional<u32> writes_to;
  };

  Sent start(u32 peer, FrameHeader header, Out const& out);
  Client* client_of(u32 kind) const { return kind < clients_.size() ? clients_[kind] : nullptr; }
  template <class Call>
  void tell_clients(Call call) const {
    for (auto* const client : clients_)
      if (client) call(*client);
  }
  FrameIn read(std::string_view all) const;
  void arrives();
  void refuse(u32 peer);
  void hear(u32 peer, u32 before);
  void apply(u32 peer, FrameIn const& come);
  void apply_early(u32 peer);
  static bool has_landed(Peer const& peer, FrameHeader const& header);

  // Of losses.
  void tell(u32 peer, std::string const& notice);
  void end_with(u32 peer, std::string const& why);
  bool is_time_to_look();
  bool take_notices();
  bool look_for_losses();
  bool take_notice(u32 from, std::string_view bytes);
  bool look_at(u32 peer, Patience::Clock::time_point now);

  void on_message(u32 peer, std::span<char const> bytes) override;
  void on_data(u32 peer, u32 data) override;
  void on_done(u64 cookie) override;
  void on_lost(u32 peer, std::string const& why) override;

  std::vector<Client*> clients_;  // by kind
  std::deque<Peer> peers_;
  Losing losing_;
  Patience::Clock::time_point looked_{};
  std::map<u64, Flight> in_flight_;  // by cookie
  u64 last_cookie_ = 0;
  std::atomic<u64> sent_{0}, received_{0}, moved_{0};
  Rounds rounds_;                   // in the engine
  std::unique_ptr<Engine> engine_;  // goes first: it reads what is in flight
};

}  // namespace meshpost::net
