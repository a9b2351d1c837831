#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "meshpost/base/error.hpp"
#include "net/engine.hpp"

// Messages between two processes under an identifier: COACCEL's MPI devices.
//
// The receiver tells the sender when it has room for a message, and how many bytes it expects
// ("ready"). Then the sender sends them in blocks. The receiver tells it when all have arrived
// ("taken"), which ends the message on both sides. So no bytes come before their place is known,
// and the order in which an engine delivers does not matter.

namespace meshpost::coaccel {

/// Some bytes of a message, in memory of this process.
struct Part {
  char* at = nullptr;
  u64 size = 0;
  bool on_host = true;  ///< threads of the host read and write it in place
};

/// A message that is sent or received. Guarded by the network's mutex.
struct Message {
  std::vector<Part> parts;
  u64 size = 0;    ///< of all parts
  u64 number = 0;  ///< among the messages of its link in this direction
  u64 moved = 0;   ///< bytes that have left or arrived
  bool begun = false, over = false;
  std::optional<Error> error{};
};

enum class Way : u32 { out, in };

/// The n-th time that a process opens a device for another process and identifier. The n-th
/// openings of both processes belong together, so messages of earlier ones don't disturb.
struct LinkKey {
  u32 process = 0;  ///< the other one
  u32 id = 0;
  u64 opening = 0;
  auto operator<=>(LinkKey const&) const = default;
};
/// "mpi:1:7", the name of the device
std::string name_of(LinkKey const& key);

/// The links of this process to others, and the thread that serves them. Thread-safe.
class Network final : private net::Events {
 public:
  /// `engine` is connected; its peers are the processes of the job.
  Network(std::unique_ptr<net::Engine> engine, u32 own, u32 processes,
          std::chrono::milliseconds deadline);
  ~Network() override;
  Network(Network const&) = delete;
  Network& operator=(Network const&) = delete;

  /// \throws Error(bad_argument) for this process itself, one that does not exist, and a link that
  /// is open; Error(peer_lost); Error(misuse) after end()
  LinkKey open(u32 process, u32 id);
  /// Ends what is in progress, and tells the other process.
  void close(LinkKey const& key) noexcept;
  /// \throws Error if the link has failed
  void check(LinkKey const& key);
  /// The bytes must not change, or be used, until the message is over. If the link has failed, the
  /// message is over, with an error.
  std::shared_ptr<Message> start(LinkKey const& key, Way way, std::vector<Part> parts);
  /// Returns when the message has arrived. \throws its Error
  void wait(Message const& message);
  /// Ends everything in progress on this link, in both processes, with this error.
  void fail(LinkKey const& key, Error const& error) noexcept;
  /// Leaves the network. Everything in progress ends with an error that has this cause.
  void end(std::string const& cause) noexcept;

 private:
  enum class Says : u32 { ready, data, taken, failed, closed };
  struct Header {
    Says says = Says::ready;
    u32 id = 0;
    u64 opening = 0;
    u64 number = 0;  ///< of the message; closed: how many messages were taken
    u64 size = 0;    ///< ready: bytes of the message; data, failed: bytes that follow
    u64 offset = 0;
  };
  struct Side {
    explicit Side(std::chrono::milliseconds length) : deadline(length) {}
    u64 next = 0;  ///< number of the next message
    std::deque<std::shared_ptr<Message>> pending{};
    u64 progress = 0;
    Deadline deadline;
  };
  struct Link {
    explicit Link(std::chrono::milliseconds length) : out(length), in(length) {}
    Side out, in;
    std::map<u64, u64> ready{};  ///< sizes that the other process expects, by number
    std::optional<Error> failure{};
  };
  struct Outgoing {
    u32 peer = 0;
    Header header;
    std::shared_ptr<char[]> bytes{};
    u64 size = 0;
  };
  struct Arrived {
    Header header;
    std::string bytes;
  };

  void on_message(u32 peer, std::span<char const> bytes) override;
  void on_data(u32, u32) override {}
  void on_done(u64 cookie) override { in_flight_.erase(cookie); }
  void on_lost(u32 peer, std::string const& why) override;

  void work();
  bool step();
  bool send_in_turn();
  bool send_block(LinkKey const& key, Link& link);
  bool has_room() const;
  bool flush();
  void look_at_deadlines();
  void take(LinkKey const& key, Link& link, Header const& header, std::span<char const> bytes);
  void take_data(LinkKey const& key, Link& link, Header const& header, std::span<char const> bytes);
  void say(LinkKey const& key, Says what, u64 number, u64 size = 0);
  void fail(LinkKey const& key, Link& link, Error const& error, bool tell);
  void finish(Side& side, u64 number);
  Error late(LinkKey const& key, Way way, Side const& side) const;

  std::unique_ptr<net::Engine> engine_;
  u32 const own_, processes_;
  std::chrono::milliseconds const deadline_;

  std::mutex mutex_;  // guards all below, and the engine
  std::condition_variable changed_, wake_;
  std::map<LinkKey, Link> links_;
  std::map<std::pair<u32, u32>, u64> opened_;         // how often, by process and identifier
  std::map<LinkKey, std::vector<Arrived>> early_;     // for links that are not open yet
  std::map<u32, std::string> lost_;                   // why, by process
  std::deque<Outgoing> outbox_;                       // in order
  std::map<u64, std::shared_ptr<char[]>> in_flight_;  // blocks that the engine reads, by cookie
  LinkKey last_{};                                    // that has sent a block
  u64 cookies_ = 0;
  u64 waiting_ = 0;       // messages in progress
  bool started_ = false;  // one since the thread last looked
  std::chrono::steady_clock::time_point looked_{};
  std::string ended_;  // why; empty: not ended
  std::thread thread_;
};

/// The network of this process; null until coaccel_mpi_init().
std::shared_ptr<Network> network();
void set_network(std::shared_ptr<Network> network);

}  // namespace meshpost::coaccel
