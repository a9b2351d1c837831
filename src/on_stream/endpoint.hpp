#pragma once
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "meshpost/on_stream/stream_endpoint.hpp"
#include "on_stream/exchange_end.hpp"
#include "on_stream/far_sender.hpp"
#include "on_stream/stream_times.hpp"
#include "on_stream/streams.hpp"

namespace meshpost::detail {

char const* name_of(StreamCall::Verb verb);

/// The state of a StreamRequest.
struct PreparedCall {
  std::weak_ptr<EndpointState> const endpoint;
  StreamCall const call;
  ResolvedCall const resolved;
};

/// The state of a StreamEndpoint.
class EndpointState : public std::enable_shared_from_this<EndpointState> {
 public:
  /// `native`: null to make a stream. \throws Error
  static std::shared_ptr<EndpointState> make(u32 world, u32 own, void* native, bool adopt,
                                             std::string name);
  ~EndpointState() = default;
  EndpointState(EndpointState const&) = delete;
  EndpointState& operator=(EndpointState const&) = delete;

  StreamId id() const { return id_; }
  Stream& stream() { return *stream_; }
  std::string const& name() const { return name_; }
  std::string subject() const;                         ///< as in "stream 'left' of cuda:0"
  StreamTimes* times() const { return times_.get(); }  ///< null: there is no timeline
  void give_times(WorldState& world);                  ///< to it, when the work is over
  void take(StreamCall const& call);
  std::shared_ptr<PreparedCall> prepare(StreamCall const& call);
  /// Puts a prepared call on the stream.
  void post(PreparedCall const& prepared, std::source_location where);
  std::string explain(StreamCall const& call);
  // An exchange (ExchangeEnd), src/on_stream/exchange.cpp.
  /// \throws Error of an operation before
  void check_well(char const* operation) { begin(operation); }
  /// Makes this stream's end. \throws Error
  ExchangeEnd make_end(ExchangeParts const& parts);
  /// \throws what start() and finish() of a step would throw before they begin
  void check_step(ExchangeEnd& end, ExchangeMemory const& memory);
  Streams const& streams() const { return *streams_; }
  u32 own() const { return own_; }
  std::string explain(ExchangeEnd const& end);
  void start(ExchangeEnd& end, void const* source, u64 count, std::source_location where);
  void finish(ExchangeEnd& end, void* target, u64 count, StreamCombine combine,
              std::source_location where);
  void synchronize();
  /// Its StreamEndpoint is destroyed. (The supervisor may have this a little longer.)
  void end();
  void know_id(StreamId id) { id_ = id; }

  // While the World is in use. Any thread.
  /// Returns when the work so far is done, for ever. Errors are kept.
  void close();
  /// The same if it used the window. \throws Error(misuse) if the stream is captured
  void release(u32 window);
  /// If it waits, or waited until its deadline: a line that says for what.
  std::optional<std::string> waits() const;
  /// Ends a wait that takes too long, or whose notifications will not come.
  void look(WorldState& world, std::optional<Loss> const& loss);

 private:
  EndpointState(std::shared_ptr<Streams> streams, WorldState& world, u32 own,
                std::unique_ptr<Stream> stream, std::string name);
  std::string said(std::string_view operation) const;
  std::string said(StreamNote const& note) const;
  std::string named(u32 window) const;
  StreamNote note() const;
  std::string so_far(StreamNote const& note) const;
  std::string stream_of(u32 peer) const;
  Error ended_wait(StreamNote const& note, Error const& loss) const;
  void find_misfit(u64 epoch);
  std::set<u32> torn_by_failure() const;
  std::string other_messages(WorldState& world, StreamNote const& note) const;

  struct Needed {
    void const* memory;
    u64 bytes;
    std::string_view what;
    bool written;
  };
  [[noreturn]] void refuse(std::string_view operation, std::string cause, std::string remedy) const;
  void check_memory(char const* operation, Needed const& needed);
  void check_memories(StreamCall const& call);
  Error with_stream(Error const& error, std::string_view operation) const;
  ResolvedCall resolve(WorldState& world, StreamCall const& call);
  ResolvedCall resolve_unnamed(WorldState& world, StreamCall const& call);
  std::string explained(WorldState& world, StreamCall const& call,
                        ResolvedCall const& resolved) const;
  void carry_out(WorldState& world, StreamCall const& call, ResolvedCall const& resolved);
  void begin_wait(WorldState& world);
  Error far_error(std::string_view operation) const;
  bool write_far(char const* operation, std::function<void()> const& write);
  StreamPost post_to(FarTarget const& target);
  void put_far(char const* operation, ResolvedCall const& resolved);
  void send_far(ResolvedCall const& resolved);
  void receive_far(ResolvedCall const& resolved);
  void use(WorldState& world, StreamCall const& call, std::string const& name);
  void check_exchange(WorldState& world, char const* operation, ExchangeEnd const& end);
  struct Torn {
    u32 window;
    char const* what;
    char const* did;  ///< the stream, with it
    char const* why;
  };
  void refuse_torn(WorldState& world, char const* operation, std::string const& name,
                   Torn const& torn);
  void check_elements(char const* operation, ExchangeEnd const& end, Needed const& needed,
                      u64 count);
  void check_start(WorldState& world, ExchangeEnd const& end);
  void check_source(ExchangeEnd& end, void const* source, u64 count);
  void check_target(ExchangeEnd& end, void* target, u64 count);
  void tear_if_thrown(ExchangeEnd const& end, std::function<void()> const& work);
  void fail(Error error);
  void fail(Error error, u64 epoch, bool of_loss = false);
  u64 epoch() const;
  Streams::Use begin(char const* operation);
  void await_work();
  void finish();
  void make_far_sender(FarMemory const& memory);
  void begin_anew(WorldState& world);

  std::shared_ptr<Streams> const streams_;
  std::shared_ptr<Device> const device_;
  u32 const own_;
  std::string const name_;
  StreamId id_;
  Allocation note_, words_;  // pinned; the device's
  StreamWords shared_;
  char const* heap_begin_ = nullptr;
  char const* heap_end_ = nullptr;
  // Memory of a source that the device reads; the driver takes long to ask.
  char const* known_begin_ = nullptr;
  char const* known_end_ = nullptr;
  mutable std::mutex mutex_;  // of the next
  std::optional<Error> failure_;
  bool of_loss_ = false;                // it is that a process is lost, whatever the stream did
  bool told_ = false;                   // a call has thrown it
  std::string gave_up_;                 // if it ended by a deadline: the wait, and what had come
  std::map<u32, std::string> windows_;  // that its operations use: their names
  std::map<u32, StreamCall> message_windows_;  // a call of each one used since the last failure
  std::set<u32> exchange_windows_;             // of each exchange made since then, used or not
  bool over_ = false;                          // its StreamEndpoint is destroyed
  u64 epoch_ = 0;                              // failures that the program was told of
  u64 failures_before_ = 0;                    // runs that had failed when it began to wait
  Deadline deadline_;                          // only the supervisor uses it
  std::unique_ptr<StreamTimes> const times_;
  // Last, because their threads use the others.
  std::unique_ptr<Stream> const stream_;
  std::unique_ptr<FarSender> far_;  // GPUs, from the first message on
};

}  // namespace meshpost::detail
