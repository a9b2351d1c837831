#include "compat/on_cpu/streams.hpp"

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/compat/on_cpu/cuda_runtime.h"
#include "meshpost/device/backend.hpp"

namespace meshpost::compat {
namespace {

using Clock = std::chrono::steady_clock;

struct TimedEvent {
  std::shared_ptr<Event> event;  // null: never recorded
  std::shared_ptr<Clock::time_point> time = std::make_shared<Clock::time_point>();
};

struct OnCpu {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<Stream>> streams;
  std::map<void*, std::shared_ptr<Event>> asked;  // by a query of a stream
  std::set<void*> apart;                          // the null stream's copies don't wait for them
  std::map<void*, TimedEvent> events;
};
OnCpu& on_cpu() {
  static auto* const one = new OnCpu;
  return *one;
}

template <class Work>
int guarded(Work&& work) noexcept {
  try {
    return work() ? cudaSuccess : cudaErrorInvalidValue;
  } catch (std::exception const& error) {
    warn(error.what());
    return cudaErrorUnknown;
  }
}

// work(stream)
template <class Work>
int with(cudaStream_t stream, Work&& work) noexcept {
  return guarded([&] {
    auto* const found = stream_on_cpu(stream);
    if (found) work(*found);
    return found != nullptr;
  });
}

int answer(int status, bool done) {
  return status == cudaSuccess && !done ? cudaErrorNotReady : status;
}

std::optional<TimedEvent> find(cudaEvent_t event) {
  std::scoped_lock const lock(on_cpu().mutex);
  auto const found = on_cpu().events.find(event);
  if (found == on_cpu().events.end()) return std::nullopt;
  return found->second;
}

// Of all streams, or of those that the null stream's copies wait for.
void await_streams(bool all) {
  std::vector<std::shared_ptr<Event>> events;
  {
    std::scoped_lock const lock(on_cpu().mutex);
    for (auto const& [handle, stream] : on_cpu().streams)
      if (all || !on_cpu().apart.contains(handle)) events.push_back(stream->record());
  }
  for (auto const& event : events) event->wait();
}

}  // namespace

Stream* stream_on_cpu(void* stream) {
  std::scoped_lock const lock(on_cpu().mutex);
  auto& streams = on_cpu().streams;
  if (!stream && !streams.contains(nullptr))
    streams[nullptr] = host_backend().open(0)->make_stream();
  auto const found = streams.find(stream);
  return found == streams.end() ? nullptr : found->second.get();
}

}  // namespace meshpost::compat

using namespace meshpost;
using namespace meshpost::compat;

void* meshpost_on_cpu_allocate(size_t size) {
  constexpr size_t alignment = 256;  // as CUDA's
  size_t const rounded = (size + alignment - 1) / alignment * alignment;
  return size == 0 || rounded < size ? nullptr : std::aligned_alloc(alignment, rounded);
}
void meshpost_on_cpu_release(void* memory) { std::free(memory); }

int meshpost_on_cpu_stream_create(cudaStream_t* stream, unsigned flags) {
  return guarded([&] {
    if (!stream) return false;
    auto made = host_backend().open(0)->make_stream();
    *stream = reinterpret_cast<cudaStream_t>(made.get());
    std::scoped_lock const lock(on_cpu().mutex);
    on_cpu().streams[*stream] = std::move(made);
    if (flags == cudaStreamNonBlocking) on_cpu().apart.insert(*stream);
    return true;
  });
}

// Returns when the work that was queued is done.
int meshpost_on_cpu_stream_destroy(cudaStream_t stream) {
  return guarded([&] {
    std::unique_ptr<Stream> ended;  // waits outside of the lock
    std::scoped_lock const lock(on_cpu().mutex);
    auto const found = stream ? on_cpu().streams.find(stream) : on_cpu().streams.end();
    if (found == on_cpu().streams.end()) return false;
    ended = std::move(found->second);
    on_cpu().streams.erase(found);
    on_cpu().asked.erase(stream);
    on_cpu().apart.erase(stream);
    return true;
  });
}

int meshpost_on_cpu_stream_synchronize(cudaStream_t stream) {
  return with(stream, [](Stream& one) { one.synchronize(); });
}
int meshpost_on_cpu_stream_query(cudaStream_t stream) {
  bool done = true;
  int const status = with(stream, [&](Stream& one) {
    std::shared_ptr<Event> event;
    {
      // One question at a time is in the stream.
      std::scoped_lock const lock(on_cpu().mutex);
      auto& asked = on_cpu().asked[stream];
      if (!asked || asked->done()) asked = one.record();
      event = asked;
    }
    // An idle stream's thread does it at once.
    for (int look = 0; look < 100 && !event->done(); ++look) std::this_thread::yield();
    done = event->done();
  });
  return answer(status, done);
}
int meshpost_on_cpu_synchronize() {
  return guarded([] {
    await_streams(true);
    return true;
  });
}
int meshpost_on_cpu_synchronize_null() {
  return guarded([] {
    await_streams(false);
    return true;
  });
}
int meshpost_on_cpu_copy(void* target, void const* source, size_t size, cudaStream_t stream) {
  return with(stream, [=](Stream& one) { one.copy(target, source, Bytes{size}); });
}
int meshpost_on_cpu_fill(void* target, int value, size_t size, cudaStream_t stream) {
  return with(stream, [=](Stream& one) { one.fill(target, static_cast<u8>(value), Bytes{size}); });
}
int meshpost_on_cpu_call(cudaStream_t stream, void (*work)(void*), void* argument) {
  if (!work) return cudaErrorInvalidValue;
  return with(stream, [=](Stream& one) { one.call([=] { work(argument); }); });
}

int meshpost_on_cpu_event_create(cudaEvent_t* event) {
  return guarded([&] {
    if (!event) return false;
    static std::size_t made = 0;
    std::scoped_lock const lock(on_cpu().mutex);
    *event = reinterpret_cast<cudaEvent_t>(++made);
    on_cpu().events[*event] = {};
    return true;
  });
}
int meshpost_on_cpu_event_destroy(cudaEvent_t event) {
  return guarded([&] {
    std::scoped_lock const lock(on_cpu().mutex);
    return on_cpu().events.erase(event) != 0;
  });
}
int meshpost_on_cpu_event_record(cudaEvent_t event, cudaStream_t stream) {
  return guarded([&] {
    auto* const one = stream_on_cpu(stream);
    if (!find(event) || !one) return false;
    auto const time = std::make_shared<Clock::time_point>();
    one->call([time] { *time = Clock::now(); });
    auto recorded = one->record();
    std::scoped_lock const lock(on_cpu().mutex);
    on_cpu().events[event] = {std::move(recorded), time};
    return true;
  });
}
int meshpost_on_cpu_event_query(cudaEvent_t event) {
  bool done = true;
  int const status = guarded([&] {
    auto const found = find(event);
    done = !found || !found->event || found->event->done();
    return found.has_value();
  });
  return answer(status, done);
}
int meshpost_on_cpu_event_synchronize(cudaEvent_t event) {
  return guarded([&] {
    auto const found = find(event);
    if (found && found->event) found->event->wait();
    return found.has_value();
  });
}
int meshpost_on_cpu_event_elapsed(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  bool done = true;
  int const status = guarded([&] {
    auto const begin = find(from), end = find(to);
    if (!milliseconds || !begin || !end || !begin->event || !end->event) return false;
    done = begin->event->done() && end->event->done();
    if (done)
      *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
    return true;
  });
  return answer(status, done);
}
int meshpost_on_cpu_wait_event(cudaStream_t stream, cudaEvent_t event) {
  auto const found = find(event);
  if (!found) return cudaErrorInvalidValue;
  return with(stream, [&](Stream& one) {
    if (found->event) one.wait(found->event);
  });
}
