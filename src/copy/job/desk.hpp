#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "copy/job/message.hpp"
#include "copy/state.hpp"
#include "net/channel.hpp"

namespace meshpost::copying {

/// This process's exposed memory, as messages name it.
class Store {
 public:
  virtual ~Store() = default;
  /// Copies into and out of it. \throws Error(bad_argument) where nothing is exposed
  virtual void write(u32 exposure, u64 offset, std::string_view bytes) = 0;
  virtual void read(u32 exposure, u64 offset, char* target, u64 size) = 0;
};

/// A copy from or to memory out of reach.
struct Wish {
  Message::Kind kind = Message::Kind::put;  ///< or get
  u32 process = 0;
  u32 exposure = 0;
  u64 offset = 0;
  char* here = nullptr;  ///< in any place of this process
  u64 size = 0;          ///< > 0
};

/// Makes copies by messages, in pieces, and answers other processes' pieces.
///
/// Called by: one thread, but for ask(). Copies of one process take turns, piece by piece, and at
/// most `window` of its pieces are unanswered: so neither side ever holds more than that many for
/// the other.
class Desk : net::Channel::Client {
 public:
  /// `name` gives processes' names for messages. `out_of_band` tells other desks of losses, and
  /// `patience` is with a message that is missing, as in net::Losing.
  Desk(std::unique_ptr<net::Engine> engine, Store& store, u32 processes,
       std::function<std::string(u32)> name, std::unique_ptr<net::OutOfBand> out_of_band = nullptr,
       std::chrono::milliseconds patience = {});

  /// Begins a copy; done when all pieces are answered. Any thread.
  StatePtr ask(Wish const& wish);
  /// Gets on. Whether anything happened.
  bool work();
  /// Whether no copy of this process is under way. Its own thread.
  bool idle() const { return copies_.empty(); }
  /// A process is no more, or nothing can come from it: its copies fail, there and here.
  void lose(u32 process, std::string const& why) { channel_.lose(process, why); }
  /// Whether other copies go on then.
  bool outlives_others() const { return channel_.engine().outlives_peers(); }
  /// All copies under way fail, and all that are asked for from now on. Its own thread, or who has
  /// taken everything away from that. What the engine may be reading stays.
  void end_all(Error const& error);
  /// The same, and gives up all others: nothing of theirs is read any more, and they are told why.
  /// Else their answers to pieces that are forgotten here would make them lost, for that reason.
  void fail_all(Error const& error);
  /// Its engine is watched by another thread.
  net::Channel& channel() { return channel_; }

  static constexpr u32 window = 8;  ///< pieces of a process that wait for an answer

 private:
  struct Copying {
    Wish wish;
    u64 next = 0;       // bytes that have been asked for
    u64 under_way = 0;  // pieces
    std::optional<Error> error{};
    std::shared_ptr<HostState> state = std::make_shared<HostState>();
  };
  struct Piece {
    u64 copy, position, size;
    u32 process;
  };
  struct Outgoing {
    Message message;
    std::shared_ptr<std::string> bytes;
  };
  struct Peer {
    std::deque<Outgoing> queue;
    std::deque<u64> turns;  // copies that have more to ask for
    u32 under_way = 0;      // pieces
    std::optional<Error> lost{};
  };

  void take_wishes();
  bool ask_for_pieces(u32 process);
  bool send_queued(u32 process);
  void queue(u32 process, Message message, std::string payload = {});
  void answer(u32 process, Message const& asked, std::string_view bytes);
  void take_answer(u32 process, Message const& answer, std::string_view bytes);
  void end_if_over(u64 copy);

  void on_message(u32 process, net::Channel::Message const& come) override;
  void on_lost(u32 process, std::string const& why) override;

  Store& store_;
  std::function<std::string(u32)> const name_;
  u64 last_copy_ = 0, last_piece_ = 0;
  std::map<u64, Copying> copies_;
  std::map<u64, Piece> pieces_;  // that wait for an answer
  std::vector<Peer> peers_;      // by process
  std::mutex mutex_;             // of what follows
  std::vector<Copying> wishes_;
  std::optional<Error> over_;  // never changes again
  std::unique_ptr<net::OutOfBand> const out_of_band_;
  net::Channel channel_;
  u64 const piece_;  // bytes
};

}  // namespace meshpost::copying
