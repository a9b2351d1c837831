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
#include "world/progress_thread.hpp"

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
struct CopyRequest {
  Message::Type type = Message::Type::put;  ///< or get
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
class CopyServer : public Server, net::Channel::Client {
 public:
  /// `name` gives processes' names for messages. `out_of_band` tells other copy servers of losses,
  /// and `timeout` is with a message that is missing, as in net::Losing.
  CopyServer(std::unique_ptr<net::Engine> engine, Store& store, u32 processes,
             std::function<std::string(u32)> name,
             std::unique_ptr<net::OutOfBand> out_of_band = nullptr,
             std::chrono::milliseconds timeout = {});

  /// Begins a copy; done when all pieces are answered. Any thread.
  StatePtr ask(CopyRequest const& request);
  bool work() override;
  bool idle() const override { return copies_.empty(); }
  void close(Error const& error) override;
  net::Channel& channel() override { return channel_; }

  static constexpr u32 window = 8;  ///< pieces of a process that wait for an answer

 private:
  struct Copying {
    CopyRequest request;
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

  void take_requests();
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
  std::vector<Copying> requests_;
  std::optional<Error> over_;  // never changes again
  std::unique_ptr<net::OutOfBand> const out_of_band_;
  net::Channel channel_;
  u64 const piece_;  // bytes
};

}  // namespace meshpost::copying
