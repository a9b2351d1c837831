#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/deadline.hpp"
#include "compat/mp/channel.hpp"
#include "compat/mp/request.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::compat::mp {

/// A window, as one process knows it.
struct WindowPart {
  void* memory = nullptr;
  u64 size = 0;
  std::vector<u64> sizes{};  ///< of all processes
};

/// Carries out the requests of a process, as an InfiniBand card does: a thread looks for requests
/// that have begun, sends their chunks, and takes those of others. Streams and kernels only store a
/// word to begin a request, and wait for a word that says that it is complete. So no stream waits
/// for anything that was not asked of it.
///
/// Order: sends, puts and gets to a peer are carried out in the order of their posts; one that has
/// not begun holds up those behind it. Receives from a peer are filled in the order of their posts;
/// until there is one, a message holds up what the peer has posted behind it. A send or put is
/// complete when the receiver has taken its last chunk.
///
/// Failure: the first one ends all requests and all waits. Each later call throws it.
///
/// Thread-safe.
class Engine {
 public:
  struct Options {
    std::chrono::milliseconds deadline{0};
    /// The error of an operation that needs this process, if it is gone.
    std::function<std::optional<Error>(u32 process)> lost{};
    bool thread = true;  ///< false: the caller's calls of progress() do all
  };
  /// `words`: the device in whose pinned memory streams and kernels find words.
  Engine(Channels channels, std::vector<u32> peers, std::shared_ptr<Device> words, Options options);
  ~Engine();
  Engine(Engine const&) = delete;
  Engine& operator=(Engine const&) = delete;

  u32 processes() const { return channels_.processes(); }
  u32 own() const { return channels_.own(); }
  /// \throws Error(bad_argument) if `peer` is none of those that mp_init got
  u32 checked_peer(std::string const& operation, int peer) const;

  /// A window of a number that all processes use for it.
  void add_window(u32 number, WindowPart part);
  void drop_window(u32 number);
  /// \throws Error(bad_argument) unless [displacement, displacement + bytes) lies in the peer's
  /// part; Error(misuse) if there is no such window
  void check_range(std::string const& operation, u32 window, u32 peer, u64 displacement,
                   u64 bytes) const;

  /// A new request, by its number. Numbers are never used again.
  u64 prepare(std::string const& operation, Task task);
  /// Puts it in order. \throws Error(misuse) if that was done before
  void post(std::string const& operation, u64 request);  ///< begins now
  void post(std::string const& operation, u64 request,
            Stream& stream);  ///< when the stream is there
  /// begins when somebody stores RequestWords::number in RequestWords::rung
  RequestWords post_by_kernel(std::string const& operation, u64 request) {
    return post_later(operation, request, false);
  }
  /// \throws Error(misuse) unless the request was prepared, and not posted
  void check_unposted(std::string const& operation, u64 request);

  /// True if it is complete. \throws Error(misuse) if there was no such request, or it was not
  /// posted; the failure
  bool complete(std::string const& operation, u64 request);
  /// Returns when it is complete. \throws likewise; Error(deadline)
  void wait(std::string const& operation, u64 request);
  /// Later work of the stream begins when it is complete. `begun`: a pinned word of that stream, to
  /// which the stream stores the number of its wait.
  void wait(std::string const& operation, u64 request, Stream& stream, u32* begun, u32 wait_number);
  /// The words for a kernel that waits. If the request is complete, they say so.
  RequestWords words_of(std::string const& operation, u64 request);
  /// A pinned word; not 0 after a failure.
  u32 const* failed() const { return failed_.rung; }
  std::chrono::milliseconds deadline() const { return options_.deadline; }

  /// Returns when the word is as awaited. \throws Error(deadline), the failure
  void wait(std::string const& operation, AwaitedWord const& awaited);

  /// Carries on what can be. True if something was.
  bool progress();
  /// \throws the failure
  void check(std::string const& operation) const;
  /// Returns when all sends, puts and gets that have begun are complete. \throws as wait()
  void flush(std::string const& operation);

 private:
  struct Reply {
    u64 request;
    Buffer source;
    u64 moved = 0;
  };
  struct Peer {
    std::deque<Request*> outgoing;   // posted sends, puts and gets
    std::deque<Request*> in_flight;  // all their chunks are sent
    std::deque<Request*> receives;
    std::deque<Reply> replies;
    u32 gets = 0;  // asked for, without a whole reply
    u64 progress = 0;
  };
  struct StreamWait {
    u64 request;
    u32 const* begun;
    u32 number;
    Deadline deadline;
  };
  using Lock = std::unique_lock<std::mutex>;

  RequestWords post_later(std::string const& operation, u64 request, bool on_stream);
  Request const* held_by(Request const& request) const;
  bool held_by_stream(Request const& request) const;
  Request* find(std::string const& operation, u64 request) const;
  void queue_on(std::function<void()> const& work);
  Request& unposted(std::string const& operation, u64 request);
  Request* awaited(std::string const& operation, u64 request);
  void put_in_order(Request& request);
  void throw_failure(std::string const& operation) const;
  void fail(Error error);
  void finish(Request& request);
  bool carry_on(Lock const& lock);
  bool send_to(u32 process, Peer& peer);
  bool reply_to(u32 process, Peer& peer);
  bool take_from(u32 process, Peer& peer, u32 lane);
  bool take(u32 process, Peer& peer, Channels::Chunk const& chunk);
  bool take_message(u32 process, Peer& peer, Channels::Chunk const& chunk);
  void take_put(u32 process, Channels::Chunk const& chunk);
  void take_get(u32 process, Peer& peer, Channels::Chunk const& chunk);
  void take_reply(Peer& peer, Channels::Chunk const& chunk);
  bool end_in_flight(u32 process, Peer& peer);
  bool end_watches();
  Error late(std::string const& operation, Request const& request, Deadline const& deadline) const;
  u64 progress_of(Request const& request) const;
  void look_at_device();
  void look_at_stream_waits();
  void look_for_losses();
  void run();

  Channels channels_;
  Options const options_;
  std::vector<u32> peers_;  // their numbers
  mutable std::mutex mutex_;
  WordPool words_;
  RequestWords const failed_;   // `rung`: after a failure; `done`: always
  Allocation const on_device_;  // a word that look_at_device() reads
  std::map<u32, Peer> at_;      // by process
  std::map<u32, WindowPart> windows_;
  std::unordered_map<u64, std::unique_ptr<Request>> requests_;
  std::vector<Request*> watches_;
  std::vector<StreamWait> stream_waits_;
  std::optional<Error> failure_;
  mutable bool told_ = false;  // a call has thrown the failure
  u32 word_waits_ = 0;         // of the host
  u64 const first_;            // number of a request
  u64 next_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace meshpost::compat::mp
