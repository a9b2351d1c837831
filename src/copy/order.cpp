#include "copy/order.hpp"

#include <algorithm>
#include <atomic>

#include "copy/workers.hpp"

namespace meshpost::copying {
namespace {

StatePtr between_host_streams(std::vector<Stream*> const& streams,
                              std::function<void()> const& make) {
  auto state = std::make_shared<HostState>();
  auto const left = std::make_shared<std::atomic<u64>>(streams.size());
  std::vector<std::shared_ptr<Event>> before;
  for (auto* const stream : streams) {
    before.push_back(stream->record());
    stream->wait(state->event());
  }
  // Begun only when the streams are there: no thread is ever held up by what is the user's.
  for (auto const& event : before)
    event->then([left, state, make] {
      if (left->fetch_sub(1) == 1) conductors().run([state, make] { state->run(make); });
    });
  return state;
}

StatePtr in_stream(std::vector<Stream*> const& streams, Stream& carrier,
                   std::function<void(Stream&)> const& queue) {
  for (auto* const stream : streams) {
    if (stream == &carrier) continue;
    auto const before = stream->record();
    if (stream->on_host()) before->wait();
    else carrier.wait(before);
  }
  queue(carrier);
  auto const end = carrier.record();
  for (auto* const stream : streams)
    if (stream != &carrier) stream->wait(end);
  return std::make_shared<StreamState>(end);
}

}  // namespace

StatePtr between(std::vector<Stream*> const& streams, Work const& work) {
  for (auto* const stream : streams)
    if (!stream)
      throw Error(Kind::bad_argument, "copy after streams", "one of the streams is null",
                  "give streams of Device::make_stream or Device::adopt_stream");
  auto const carrier = std::ranges::find_if(streams, [](auto* one) { return !one->on_host(); });
  if (carrier == streams.end()) return between_host_streams(streams, work.make);
  if (work.queue) return in_stream(streams, **carrier, work.queue);
  for (auto* const stream : streams) stream->record()->wait();
  auto state = std::make_shared<HostState>();
  state->run(work.make);
  return state;
}

}  // namespace meshpost::copying
