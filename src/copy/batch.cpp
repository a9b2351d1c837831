#include <fmt/format.h>

#include <algorithm>

#include "copy/order.hpp"
#include "copy/overlap.hpp"
#include "copy/request.hpp"
#include "copy/together.hpp"
#include "copy/workers.hpp"

namespace meshpost {
namespace {

using copying::Request;
using copying::StatePtr;
using copying::Together;

struct Batch {
  std::vector<Request> requests;
  std::vector<copying::Dependence> dependences;

  bool is_independent(u64 i) const { return dependences[i].meets == copying::Dependence::none; }
  bool independent() const {
    return std::ranges::all_of(dependences, [](copying::Dependence const& one) {
      return one.meets == copying::Dependence::none;
    });
  }
  // Independent entries first. The others follow in the list's order, each when its earlier entries
  // are done.
  void make() const {
    std::vector<StatePtr> states(requests.size());
    std::vector<Request> first;
    std::vector<u64> numbers;
    for (u64 i = 0; i < requests.size(); ++i)
      if (is_independent(i)) first.push_back(requests[i]), numbers.push_back(i);
    auto started = copying::start_all(first);
    for (u64 i = 0; i < first.size(); ++i) states[numbers[i]] = std::move(started[i]);
    for (u64 i = 0; i < requests.size(); ++i) {
      if (states[i]) continue;
      try {
        for (u32 const before : dependences[i].after) states[before]->wait();
        states[i] = copying::start(requests[i]);
      } catch (...) {
        std::erase(states, nullptr);
        Together::wait_for(states);  // waits for all, even after an error; throws the first one
        throw;
      }
    }
    Together::wait_for(states);
  }
};

Batch check(std::span<Segment const> segments, Overlap overlap) {
  Batch batch;
  std::vector<Segment> kept;
  std::vector<u64> numbers;  // in the caller's list
  for (u64 i = 0; i < segments.size(); ++i) {
    auto const& segment = segments[i];
    if (segment.size == 0) continue;
    PitchedCopy rows;
    rows.target = segment.target, rows.source = segment.source, rows.width = segment.size;
    try {
      batch.requests.push_back(copying::check_request(rows));
    } catch (Error const& error) {
      throw Error(error.kind(), fmt::format("copy_batch, entry {}: {}", i, error.operation()),
                  error.cause(), error.remedy());
    }
    kept.push_back(segment);
    numbers.push_back(i);
  }
  batch.dependences = copying::dependences(kept);
  if (overlap == Overlap::refuse)
    for (u64 i = 0; i < kept.size(); ++i)
      if (!batch.is_independent(i)) {
        u32 const met = batch.dependences[i].meets;
        auto const& early = kept[met];
        auto const& late = kept[i];
        throw Error(Kind::bad_argument, "copy_batch",
                    fmt::format("entries {} ({} bytes from {} to {}) and {} ({} bytes from {} to "
                                "{}) overlap",
                                numbers[met], early.size.value, early.source, early.target,
                                numbers[i], late.size.value, late.source, late.target),
                    "let them go one after the other (Overlap::order), or make two batches");
      }
  return batch;
}

}  // namespace

Copy copy_batch(std::span<Segment const> segments, BatchOptions const& options) {
  copying::check_caller("copy_batch");
  auto batch = std::make_shared<Batch const>(check(segments, options.overlap));
  if (!options.streams.empty()) {
    copying::Work work{[batch] { batch->make(); }, nullptr};
    // A stream takes them in order, which is right for any overlap.
    if (std::ranges::all_of(batch->requests, [](auto const& one) { return one.by_engine(); }))
      work.queue = [batch](Stream& stream) {
        for (auto const& request : batch->requests) copying::queue(request, stream);
      };
    return Copy(copying::between(options.streams, work));
  }
  if (batch->requests.empty()) return Copy(copying::finished());
  if (batch->independent())
    return Copy(Together::of([&] { return copying::start_all(batch->requests); }));
  auto state = std::make_shared<copying::HostState>();
  copying::conductors().run([state, batch] { state->run([&] { batch->make(); }); });
  return Copy(state);
}

}  // namespace meshpost
