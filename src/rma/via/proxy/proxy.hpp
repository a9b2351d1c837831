#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "meshpost/device/device.hpp"
#include "meshpost/rma/post.hpp"
#include "meshpost/rma/window.hpp"
#include "meshpost/world/heap.hpp"
#include "net/channel.hpp"
#include "rma/via/access.hpp"
#include "rma/via/proxy/parcel.hpp"
#include "rma/via/proxy/remote_heap.hpp"
#include "rma/via/proxy/staging.hpp"
#include "rma/via/proxy/undelivered.hpp"
#include "rma/windows/places.hpp"
#include "world/peers.hpp"

namespace meshpost::detail {

/// Does what ranks ask for beyond loads and stores: a thread of the host that empties their rings,
/// carries out what is for devices of this process (within.cpp), sends parcels to the proxies
/// of other processes, and carries out theirs. Its thread lives as long as the World, and sleeps
/// while no run is under way. Workers of CPU devices help (help()); then the thread steps back, and
/// looks whether they still do: after 50 us, then half as often each time, up to 1 ms. So where a
/// rank computes instead, the thread takes over after no longer than the workers had helped before.
///
/// Who supervises runs never enters the engine, and waits for nobody who is in it for longer than
/// see_that_nobody_hangs() does.
class Proxy : net::Channel::Client {
 public:
  /// Collective if processes are apart. \throws Error(bad_environment) where they are and there is
  /// no engine
  Proxy(Peers const& peers, Layout const& layout, Heap const& heap, Places const& places,
        std::string const& engine);
  ~Proxy() override;
  /// Makes its thread, which sleeps until the first run. Once.
  void begin_thread();
  Proxy(Proxy const&) = delete;
  Proxy& operator=(Proxy const&) = delete;

  /// What the ranks of an own device need.
  PostRing ring(u32 own_device) const;
  Mailbox mailbox(u32 own_device) const { return own_[own_device].access->mailbox(); }

  /// Before a run: what the heap has grown by can be written to from now on. Collective.
  void follow_heap() {
    if (channel_) remote_heap_.follow(channel_->engine());
  }
  /// Wakes the thread. What is still under way of an earlier run will be dropped.
  void start(u32 run);
  /// Lets it sleep, if it is awake: from then on no memory of ranks is touched, unless somebody
  /// hangs().
  void stop();
  /// After the ranks of all processes have ended: returns when all they sent has arrived.
  /// Collective if processes are apart. \throws Error(peer_lost) also where none comes for the
  /// job's deadline
  void settle(std::string const& operation);
  /// The run was poisoned, and ranks on own devices in the host's memory are about to leave: what
  /// they have asked for is withdrawn, so that from now on nobody reads or writes memory of theirs
  /// that ends with them. Any thread; waits for the copy of one piece, and never for the engine.
  void withdraw();
  /// The run has come to nothing, and its ranks have ended: from now on no memory of theirs is
  /// touched but windows, by writes that have begun. \throws Error(peer_lost) if somebody hangs()
  void abandon();
  /// After that: returns when these are over everywhere, so that none lands in the next run.
  /// Collective if processes are apart. Where nothing comes for as long as `patience`, the proxy
  /// has failed: no run can begin any more.
  void come_to_rest(std::string const& operation, std::chrono::milliseconds patience);

  /// A round of its work, by whoever has nothing else to do, such as a worker all of whose ranks
  /// wait: so a message passes from worker to worker, and no thread is switched. Whether anything
  /// came of it. Nothing is done where somebody else is at it.
  bool help();

  /// What the host raises at an own device, while a run is under way; false: it is none any more.
  /// Any thread. \throws Error(peer_lost) if somebody hangs()
  bool deliver(u32 own_device, Delivery const& count);

  /// Whether nothing is to be done, and nothing was between two calls that return the same.
  std::optional<u64> quiet() const;
  /// Parcels to and from one process, or all, of all runs.
  using Traffic = net::Channel::Traffic;
  Traffic traffic(u32 process) const { return channel_ ? channel_->traffic(process) : Traffic{}; }
  Traffic traffic() const { return channel_ ? channel_->traffic() : Traffic{}; }
  /// Changes whenever a message or a piece of one gets on: of what it brings, ranks see only the
  /// end.
  u64 moved() const {
    return moved_.load(std::memory_order_relaxed) + activity_.load(std::memory_order_relaxed) +
           (channel_ ? channel_->moved() : 0);
  }
  /// What has gone wrong with the network.
  std::optional<Error> failure() const;

  /// Whether a thread did not come back from the engine, though a process is lost. Then that
  /// thread, this proxy and whatever the thread may touch are left alone for ever (hang.cpp).
  /// Called by: who supervises runs, as the two below.
  bool hangs();
  /// \throws Error(peer_lost) naming that process
  void see_that_nobody_hangs();

 private:
  // An own device's requests, and the way to its memory.
  struct Own {
    Allocation records, words, tail, done, far, stages;
    std::unique_ptr<Access> access;
    u32 taken = 0;
    u32* head() const { return words.as<u32>(); }
    u32* seen() const { return words.as<u32>() + 32; }  // in another cache line
  };
  // A get whose answer is awaited.
  struct Get {
    u32 own = 0;          // device that asks
    u32* done = nullptr;  // to raise at its end
    char* target = nullptr;
    u64 size = 0, left = 0;  // bytes in all, and still to come
  };
  // What is to be sent, in as many parcels as it takes. Bytes are copied out of the ranks' memory,
  // as a rank may be ended before the network has read it; but many bytes of the heap, which
  // outlives ranks, stay where they are, and those of a device that the engine reads itself.
  struct Outgoing {
    Parcel parcel;
    std::string copy{};
    char const* source = nullptr;  // in the heap, or what is kept; null: copy
    std::optional<u32> device{};   // own one, in whose memory it is: only the engine reads it
    Keep keep{};
    bool ready = true;  // its bytes are here
    u64 size = 0;       // of them, then
    u64 sent = 0;
    u64 written = 0;            // that the engine has begun to write, but no parcel tells of,
    u64 sum = 0;                // of them,
    std::optional<u32> slot{};  // to it; none: to the window
    u32 reading = 0;            // operations of the engine that read the source
    u32* done = nullptr;        // to raise when it has been read
    u64 holds = 0;
    u64& held;
    ~Outgoing() { held -= holds; }
    std::string_view rest() const { return {(source ? source : copy.data()) + sent, size - sent}; }
  };
  using OutgoingPtr = std::shared_ptr<Outgoing>;
  struct Peer {
    std::deque<OutgoingPtr> queue;
    Undelivered undelivered;
    // Likewise, what may still come into windows that the engine writes to, but not the host.
    Undelivered unsettled;
    u32 settled = 0;  // parcels before this one came from it, and change nothing any more
  };
  // How the next bytes go.
  struct Way {
    enum class By : u32 { message, write, later } by = By::message;
    RemoteHeap::Target target{};
    u64 bytes = 0;
    bool to_slot = false;
  };

  // Excludes all who drive. \throws Error(peer_lost) if somebody hangs()
  std::unique_lock<std::mutex> alone();
  void wake();
  void make_own();
  void expose_sources();
  std::optional<Error> await_sent(std::string const& operation);
  void settle_all(std::string const& operation);
  void await_parcels(u32 process, u64 sent, std::string const& operation);
  void wake_up();
  void begin_anew();
  void end_accesses(bool well);
  void work();
  bool await_run();
  void attend_run();
  void rest(std::chrono::microseconds length);
  bool drive(bool helping);  // a round, if nobody else is at it; whether anything happened
  bool get_on();             // what is to be done in it
  void begin_work();
  bool nothing_left() const;
  bool is_empty() const;
  bool empty_ring(u32 own);
  void take(u32 own, PostRecord const& record);
  OutgoingPtr make_outgoing(Parcel const& parcel, u64 bytes);
  OutgoingPtr queue(u32 process, Parcel const& parcel, u64 bytes = 0);
  void queue_long(u32 own, u32 process, Parcel parcel, char const* source, u32* done);
  std::deque<OutgoingPtr> read_in_pieces(u32 own, Parcel parcel, char const* source, u64 size,
                                         std::function<void()> const& read);
  void read_instead(Peer& peer, Outgoing& out);
  bool carry_out_queued();
  u64 most_in_message() const;
  bool outlives_ranks(u32 own, void const* memory, u64 bytes) const;
  std::optional<Place> own_window(u32 own, void const* memory, u64 bytes) const;
  // Does `work`, which reads or writes memory of the own device's ranks, unless it was withdrawn.
  template <class Work>
  void with_memory_of_ranks(u32 own, Work&& work) {
    if (!layout_.devices[own]->in_host_memory()) return work();  // a kernel frees no memory there
    std::scoped_lock const lock(of_ranks_);
    if (!withdrawn_) work();
  }
  u64 readable(Outgoing const& out) const;
  bool send_queued();
  bool send_next(u32 process, OutgoingPtr const& out);
  net::Channel::Sent send_parcel(u32 process, Parcel& parcel, net::Channel::Out out);
  Way way_of(u32 process, Outgoing const& out) const;
  Way way_to_slot(u32 process, u64 left) const;
  u32 settled(u32 process);
  bool lost(u32 process) const { return channel_ && channel_->lost(process); }
  bool begin_write(u32 process, OutgoingPtr const& out, Way const& way);
  void end_if_read(Outgoing& out);
  bool tell_news(bool idle);
  bool at_rest(std::vector<u64> const& writes_to_land);
  void fail(Error error);
  void see_window(Parcel const& parcel) const;
  static void check_written(Parcel const& parcel, std::string_view bytes);
  void carry_out(u32 from, Parcel const& parcel, Payload const& payload);
  void answer_get(u32 from, Parcel const& parcel);
  void take_answer(Parcel const& parcel, Payload const& payload);
  char* own_memory(u32 device, u64 offset, u64 bytes) const;
  Access& access_of(u32 device) { return *own_[device - layout_.first_device].access; }

  void on_arrival() override { begin_work(); }
  void on_message(u32 process, net::Channel::Message const& message) override;
  void on_heard(u32 process, u32 before) override;
  void on_read(std::shared_ptr<void> const& source) override;
  void on_lost(u32 process, std::string const& why) override;

  Peers const& peers_;
  Layout const& layout_;
  Heap const& heap_;
  Places const& places_;
  u64 held_ = 0;  // bytes that wait to be sent, or are being; outlives them
  // What the engine may write to or read from ends behind it.
  Staging staging_;
  std::vector<Own> own_;
  std::optional<net::Channel> channel_;  // none: all devices out of reach are this process's
  bool engine_reaches_devices_ = false;  // own ones, in whose memory the host can't load and store
  RemoteHeap remote_heap_;
  std::vector<Peer> peers_of_net_;  // by process
  std::map<u64, Get> gets_;
  u64 next_get_ = 0;

  // Whoever holds it does what the thread does: all that is private and no atomic is theirs.
  std::mutex driving_;
  std::atomic<u64> helps_{0};  // rounds of others than the thread
  std::thread thread_;
  std::mutex resting_;
  std::condition_variable wakes_;
  bool woken_ = false;
  u32 run_ = 0;
  bool in_order_ = false;  // rings and accesses are as a run that went well has left them
  bool settled_ = false;
  bool over_ = false;                // the run: nothing is carried out
  bool shares_cores_ = false;        // with ranks
  std::atomic<bool> awake_{false};   // else nobody drives; cleared under driving_
  std::atomic<bool> ending_{false};  // the thread; under resting_
  std::atomic<bool> idle_{true};
  std::atomic<u64> activity_{0}, moved_{0};
  // Held while memory of ranks on devices in the host's memory is read or written. Below driving_,
  // and never held in the engine: whoever hangs there, or comes back late, finds it withdrawn.
  std::mutex of_ranks_;
  bool withdrawn_ = false;    // guarded by it
  mutable std::mutex mutex_;  // of failure_
  std::optional<Error> failure_;
};

}  // namespace meshpost::detail
