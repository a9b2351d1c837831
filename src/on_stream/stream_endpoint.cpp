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

void StreamEndpoint::take(detail::StreamCall const& call) { checked(state_).take(call); }

StreamRequest StreamPreparation::take(detail::StreamCall const& call) {
  return StreamRequest(checked(state_).prepare(call));
}
std::string StreamExplanation::take(detail::StreamCall const& call) {
  return checked(state_).explain(call);
}
void StreamRequest::post(std::source_location where) {
  if (!call_)
    throw Error(Kind::misuse, "post a request of a stream", "the request was moved from",
                "post the one that it was moved to");
  auto const endpoint = call_->endpoint.lock();
  if (!endpoint)
    throw Error(Kind::misuse, std::string(detail::name_of(call_->call.verb)) + ", post a request",
                "its stream does not exist any more", "keep the StreamEndpoint alive");
  endpoint->post(*call_, where);
}

StreamEndpoint::Task StreamEndpoint::task(std::string_view name, std::source_location where) {
  return {checked(state_), name, where};
}
StreamEndpoint::Task::Task(EndpointState& state, std::string_view name, std::source_location where)
    : state_(state), where_(where) {
  if (!host_is_observed()) return;
  name_ = name;
  begin_ = host_clock_ns();
  auto* const times = state_.times();
  if (!times) return;
  end_ = times->begin(state_.stream(), name, "task", 0);
  // A thread of the host was woken up for that; the task itself would have done it.
  if (!state_.stream().on_host()) begin_ = host_clock_ns();
}
StreamEndpoint::Task::~Task() {
  if (begin_ == 0) return;
  u64 const end = host_clock_ns();
  if (end_) detail::StreamTimes::store(state_.stream(), end_);
  tell_host_observers({HostCallKind::launch, "task", std::move(name_), where_, begin_, end});
}

}  // namespace meshpost
