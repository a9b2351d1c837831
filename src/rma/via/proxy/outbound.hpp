#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "rma/via/proxy/driver.hpp"
#include "rma/via/proxy/writes.hpp"

namespace meshpost::detail {

/// Requests of own ranks and answers to others, on their way: a queue for each process, this one
/// included. Each queue keeps the order in which they were added. One thread at a time.
class Outbound : WorldMemory {
 public:
  Outbound(WorldMemory const& memory, OwnDevices& own, Driver& driver)
      : WorldMemory(memory), own_(own), driver_(driver), queues_(group_.count()) {}
  /// To other processes. Collective.
  void connect(net::Channel& channel);

  void begin_run(u32 run);
  /// The run has failed: forgets everything for which no write has begun.
  void abandon();
  void forget_all();
  bool is_of_this_run(u32 run) const { return run == run_ && !over_; }
  bool is_over() const { return over_; }

  /// So much waits that ranks should wait, too.
  bool is_full() const;
  /// A message, with a copy of `bytes`.
  void put(u32 process, WireMessage const& wire, std::string_view bytes = {});
  /// A message, and bytes of an own device's memory. `done`, if any, is raised when they have been
  /// read. The message's counter is raised with the last of them.
  void put_long(u32 own, u32 process, WireMessage wire, char const* source, u32* done);

  /// The next message for this process, if its bytes are here.
  OutgoingPtr take_for_here();
  /// It has been carried out.
  void has_carried_out(Outgoing& out);
  /// Sends what it can to other processes. True if anything has happened.
  bool send();
  /// Tells news to processes that no other message has told: what was carried out and let go of.
  /// `idle`: there is nothing else to do.
  bool tell_news(bool idle);
  bool is_empty() const;
  bool is_empty(u32 process) const { return queues_[process].empty(); }
  void lose(u32 process) { queues_[process].clear(); }
  void has_read(Outgoing& out);
  /// Null: this World sends nothing to other processes.
  Writes* writes() { return writes_ ? &*writes_ : nullptr; }

 private:
  OutgoingPtr make(WireMessage const& wire, u64 bytes);
  OutgoingPtr queue(u32 process, WireMessage const& wire, u64 bytes);
  OutgoingPtr queue_in_place(u32 process, WireMessage const& wire, char const* source);
  std::deque<OutgoingPtr> read_in_pieces(u32 own, WireMessage const& wire, char const* source,
                                         std::function<void()> const& read);
  void read_instead(std::deque<OutgoingPtr>& queue);
  bool send_next(u32 process);
  net::Channel::Sent send_message(u32 process, WireMessage& wire, net::Channel::Out out);
  void end_if_read(Outgoing& out);
  bool lost(u32 process) const { return channel_ && channel_->lost(process); }

  u64 held_ = 0;  // bytes that wait to be sent, or are being sent; outlives their Outgoing
  OwnDevices& own_;
  Driver& driver_;
  net::Channel* channel_ = nullptr;              // null: nothing goes to another process
  std::optional<Writes> writes_;                 // set with channel_
  std::vector<std::deque<OutgoingPtr>> queues_;  // by process
  u32 run_ = 0;
  bool over_ = false;  // the run is over: nothing is carried out
};

}  // namespace meshpost::detail
