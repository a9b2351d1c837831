#include "meshpost/on_stream/stream_endpoint.hpp"

#include "base/fork.hpp"
#include "base/host_calls.hpp"
#include "on_stream/endpoint.hpp"

namespace meshpost {

using detail::EndpointState;

namespace {

EndpointState& checked(std::shared_ptr<EndpointState> const& state) {
  if (!state)
    throw Error(Kind::misuse, "use a stream", "the endpoint was moved from",
                "use the one that it was moved to");
  return *state;
}

}  // namespace

StreamEndpoint::StreamEndpoint(World const& world, u32 device, std::string name)
    : state_(EndpointState::make(world.communicator().world, device, nullptr, false,
                                 std::move(name))) {}
StreamEndpoint::StreamEndpoint(World const& world, u32 device, void* native, std::string name)
    : state_(
          EndpointState::make(world.communicator().world, device, native, true, std::move(name))) {}
StreamEndpoint::~StreamEndpoint() {
  if (!state_ || leave_to_parent(state_)) return;
  state_->end();
}
StreamEndpoint::StreamEndpoint(StreamEndpoint&&) noexcept = default;

StreamId StreamEndpoint::id() const { return checked(state_).id(); }
Stream& StreamEndpoint::stream() const { return checked(state_).stream(); }
void StreamEndpoint::synchronize(std::source_location where) {
  auto& state = checked(state_);
  HostCall call(HostCallKind::wait, "synchronize", where);
  call.about([&] { return state.subject(); });
  state.synchronize();
}

namespace {

// A call that queues an operation of a stream.
class Queued {
 public:
  Queued(char const* operation, EndpointState const& state, std::source_location where)
      : call_(HostCallKind::queue, operation, where) {
    call_.about([&] { return state.subject(); });
  }

 private:
  HostCall call_;
};

void send(std::shared_ptr<EndpointState> const& of, char const* operation,
          detail::StreamSend const& what, std::source_location where) {
  auto& state = checked(of);
  Queued const call(operation, state, where);
  state.send(operation, what);
}

}  // namespace

void StreamEndpoint::put(detail::TypedPut const& put, std::source_location where) {
  send(state_, "put", {.window = &put.window, .put = &put}, where);
}
void StreamEndpoint::put(detail::TypedPut const& put, RankId rank, Tag tag,
                         std::source_location where) {
  send(state_, "put_notify", {.window = &put.window, .put = &put, .notified = rank, .tag = tag},
       where);
}
void StreamEndpoint::put(detail::TypedPut const& put, StreamId stream, Tag tag,
                         std::source_location where) {
  send(state_, "put_notify", {.window = &put.window, .put = &put, .notified = stream, .tag = tag},
       where);
}
void StreamEndpoint::notify(WindowInfo const& window, RankId rank, Tag tag,
                            std::source_location where) {
  send(state_, "notify", {.window = &window, .notified = rank, .tag = tag}, where);
}
void StreamEndpoint::notify(WindowInfo const& window, StreamId stream, Tag tag,
                            std::source_location where) {
  send(state_, "notify", {.window = &window, .notified = stream, .tag = tag}, where);
}
void StreamEndpoint::notify(WindowInfo const& window, HostId host, Tag tag,
                            std::source_location where) {
  send(state_, "notify", {.window = &window, .notified = host, .tag = tag}, where);
}
void StreamEndpoint::wait(WindowInfo const& window, std::vector<Counts> const& awaited,
                          std::source_location where) {
  auto& state = checked(state_);
  Queued const call("wait", state, where);
  state.wait(window, awaited);
}

StreamEndpoint::Task StreamEndpoint::task(std::string_view name, std::source_location where) {
  return {checked(state_), name, where};
}
StreamEndpoint::Task::Task(EndpointState& state, std::string_view name, std::source_location where)
    : state_(state), where_(where) {
  if (!host_is_observed()) return;
  name_ = name;
  if (auto* const times = state_.times()) end_ = times->begin(state_.stream(), name, "task", 0);
  begin_ = host_clock_ns();
}
StreamEndpoint::Task::~Task() {
  if (begin_ == 0) return;
  u64 const end = host_clock_ns();
  if (end_) detail::StreamTimes::store(state_.stream(), end_);
  tell_host_observers({HostCallKind::launch, "task", std::move(name_), where_, begin_, end});
}

}  // namespace meshpost
