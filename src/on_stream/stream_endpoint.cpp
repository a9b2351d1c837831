#include "meshpost/on_stream/stream_endpoint.hpp"

#include "base/fork.hpp"
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
void StreamEndpoint::synchronize() { checked(state_).synchronize(); }

void StreamEndpoint::put(detail::TypedPut const& put) {
  checked(state_).send("put", {.window = &put.window, .put = &put});
}
void StreamEndpoint::put(detail::TypedPut const& put, RankId rank, Tag tag) {
  checked(state_).send("put_notify",
                       {.window = &put.window, .put = &put, .notified = rank, .tag = tag});
}
void StreamEndpoint::put(detail::TypedPut const& put, StreamId stream, Tag tag) {
  checked(state_).send("put_notify",
                       {.window = &put.window, .put = &put, .notified = stream, .tag = tag});
}
void StreamEndpoint::notify(WindowInfo const& window, RankId rank, Tag tag) {
  checked(state_).send("notify", {.window = &window, .notified = rank, .tag = tag});
}
void StreamEndpoint::notify(WindowInfo const& window, StreamId stream, Tag tag) {
  checked(state_).send("notify", {.window = &window, .notified = stream, .tag = tag});
}
void StreamEndpoint::notify(WindowInfo const& window, HostId host, Tag tag) {
  checked(state_).send("notify", {.window = &window, .notified = host, .tag = tag});
}
void StreamEndpoint::wait(WindowInfo const& window, std::vector<Counts> const& awaited) {
  checked(state_).wait(window, awaited);
}

}  // namespace meshpost
