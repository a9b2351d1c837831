#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/channel.hpp"
#include "rma/via/proxy/inbound.hpp"

namespace meshpost::detail {

/// Carries out the requests of ranks that loads and stores can't serve. It empties their rings, and
/// carries out messages for devices of this process (Inbound). It sends messages to the proxies of
/// other processes (Outbound), and carries out theirs. A World has one, for all its runs. Driver
/// says which thread does it, and when. Members that are not atomic belong to that thread; between
/// runs, to the thread that supervises them.
class Proxy : WorldMemory, net::Channel::Client {
 public:
  /// Collective if processes are apart. \throws Error(bad_environment) if they are and there is no
  /// engine
  Proxy(WorldMemory const& memory, std::string const& engine);
  ~Proxy() override;
  /// Makes its thread, which sleeps until the first run. Once.
  void begin_thread() { driver_.begin_thread(); }
  Proxy(Proxy const&) = delete;
  Proxy& operator=(Proxy const&) = delete;

  /// The memory that the ranks of an own device need.
  RequestRing ring(u32 own) const { return own_.ring(own); }
  CommandQueue command_queue(u32 own) const { return own_.access(own).command_queue(); }

  /// Before a run: makes the growth of the heap writable. Collective.
  void follow_heap() {
    if (channel_) outbound_.writes()->follow_heap();
  }
  /// Wakes the thread. Remaining transfers of an earlier run will be dropped.
  void start(u32 run);
  /// Lets it sleep, if it is awake. From then on no memory of ranks is touched, unless a thread
  /// hangs().
  void stop();
  /// After the ranks of all processes have ended: returns when everything they sent has arrived.
  /// Collective if processes are apart. \throws Error(peer_lost) also if nothing arrives for the
  /// job's deadline
  void drain(std::string const& operation);
  /// OwnDevices::withdraw(), after the run was poisoned.
  void withdraw() { own_.withdraw(); }
  /// The run has failed, and its ranks have ended. From now on, of their memory only windows are
  /// touched, by writes that have begun. \throws Error(peer_lost) if a thread hangs()
  void abandon();
  /// After that: returns when these writes are over everywhere, so that none lands in the next run.
  /// Collective if processes are apart. If nothing arrives for as long as `timeout`, the proxy has
  /// failed: no run can begin any more.
  void quiesce(std::string const& operation, std::chrono::milliseconds timeout);

  /// Does a round of the proxy's work, for a thread that has nothing else to do, such as a worker
  /// all of whose ranks wait. So a message passes from worker to worker without a thread switch.
  /// True if anything came of it. Does nothing if another thread is in a round.
  bool help() { return driver_.help(); }

  /// The host's notification at an own device, while a run is in progress. False: no run is in
  /// progress any more. Any thread. \throws Error(peer_lost) if a thread hangs()
  bool raise(u32 own_device, via::Signal const& count);

  /// A number if there is nothing to do. If two calls return the same, there was nothing to do
  /// between them.
  std::optional<u64> quiet() const;
  /// Messages to and from one process, or all, of all runs.
  using Traffic = net::Channel::Traffic;
  Traffic traffic(u32 process) const { return channel_ ? channel_->traffic(process) : Traffic{}; }
  Traffic traffic() const { return channel_ ? channel_->traffic() : Traffic{}; }
  /// Changes whenever a message or a piece of one makes progress; ranks see only the end of a
  /// message.
  u64 moved() const { return driver_.moved() + (channel_ ? channel_->moved() : 0); }
  /// The first failure of the network.
  std::optional<Error> failure() const { return driver_.failure(); }

  /// Driver::hangs() and see_that_nobody_hangs().
  bool hangs() { return driver_.hangs(); }
  void see_that_nobody_hangs() { driver_.see_that_nobody_hangs(); }

 private:
  std::optional<Error> await_sent(std::string const& operation);
  void drain_all(std::string const& operation);
  void await_messages(u32 process, u64 sent, std::string const& operation);
  bool get_on();
  bool nothing_left() const;
  bool is_empty() const;
  bool is_quiescent(std::vector<u64> const& writes_to_land);
  bool empty_ring(u32 own);
  void take(u32 own, RequestRecord const& record);
  bool carry_out_queued();

  void on_arrival() override { driver_.begin_work(); }
  void on_message(u32 process, net::Channel::Message const& message) override;
  void on_heard(u32 process, u32 before) override { outbound_.writes()->heard(process, before); }
  void on_read(std::shared_ptr<void> const& source) override {
    outbound_.has_read(*static_cast<Outgoing*>(source.get()));
  }
  void on_lost(u32 process, std::string const& why) override;

  Driver driver_;
  OwnDevices own_;
  Outbound outbound_;
  Inbound inbound_;
  // Declared last: memory that the engine may write to or read from is destroyed behind it. None:
  // all devices out of reach are this process's.
  std::optional<net::Channel> channel_;
  bool drained_ = false;
};

}  // namespace meshpost::detail
