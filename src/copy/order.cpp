#include "copy/order.hpp"

#include <algorithm>
#include <atomic>

#include "copy/together.hpp"
#include "copy/workers.hpp"

namespace meshpost::copying {
namespace {

// All are recorded before one waits. Otherwise two threads with the same streams could deadlock:
// each would record one stream behind the other's wait in it. Take two copies, and assume that in
// some stream the wait of the first comes before the record of the second. Then all records of the
// first come before all waits of the second. So the first waits for the second in no stream. The
// same holds for a cycle of more copies.
StatePtr between_host_streams(std::vector<Stream*> const& streams, Work const& work) {
  auto state = std::make_shared<HostState>();
  auto const left = std::make_shared<std::atomic<u64>>(streams.size());
  std::vector<std::shared_ptr<Event>> before;
  before.reserve(streams.size());
  for (auto* const stream : streams) before.push_back(stream->record());
  auto const begin = [state, work] {
    work.begin ? follow(state, work.begin) : state->run(work.make);
  };
  // This runs on a stream's thread, where nobody could catch an exception. So it becomes the copy's
  // error.
  auto const arrive = [left, state, begin] {
    if (left->fetch_sub(1) == 1) try {
        conductors().run(begin);
      } catch (...) {
        state->run([] { throw; });
      }
  };
  try {
    for (auto* const stream : streams) stream->wait(state->event());
    // The work begins only when the streams are there: no thread of the library is ever blocked by
    // the user's work.
    for (auto const& event : before) event->then(arrive);
  } catch (...) {  // not all arrive, so it never begins; streams that wait continue
    state->run([] { throw; });
    throw;
  }
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
  if (carrier == streams.end()) return between_host_streams(streams, work);
  if (work.queue) return in_stream(streams, **carrier, work.queue);
  for (auto* const stream : streams) stream->record()->wait();
  auto state = std::make_shared<HostState>();
  state->run([&] { work.begin ? work.begin()->wait() : work.make(); });
  return state;
}

}  // namespace meshpost::copying
