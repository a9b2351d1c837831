#include "on_stream/endpoint.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <utility>

#include "base/caught.hpp"
#include "base/fork.hpp"
#include "base/host_calls.hpp"
#include "meshpost/base/events.hpp"

namespace meshpost::detail {
namespace {

Device& device_of(WorldState& world, u32 own) {
  auto const& devices = world.layout().devices;
  if (own < devices.size()) return *devices[own];
  throw Error(Kind::bad_argument, "make a stream",
              fmt::format("device {} was named; this process has {}", own, devices.size()),
              devices.empty() ? "make streams in a process that has devices"
                              : fmt::format("name one from 0 to {}", devices.size() - 1));
}

}  // namespace

std::shared_ptr<EndpointState> EndpointState::make(u32 world, u32 own, void* native, bool adopt,
                                                   std::string name) {
  guard("make a stream");
  HidesHostCalls const hidden;
  auto streams = Streams::of(world);
  auto const use = streams->use("make a stream");
  auto& device = device_of(use.world(), own);
  use.world().endpoints().expect_streams();
  // While the stream waits, CUDA would load no kernel.
  backend(device.kind()).load_entries(device);
  auto stream = adopt ? device.adopt_stream(native) : device.make_stream();
  std::shared_ptr<EndpointState> state(
      new EndpointState(streams, use.world(), own, std::move(stream), std::move(name)));
  streams->add(use.world().layout().first_device + own, state);
  return state;
}

EndpointState::EndpointState(std::shared_ptr<Streams> streams, WorldState& world, u32 own,
                             std::unique_ptr<Stream> stream, std::string name)
    : streams_(std::move(streams)),
      device_(world.layout().devices[own]),
      own_(own),
      name_(std::move(name)),
      note_(device_->allocate(Bytes{sizeof(StreamNote)}, MemoryKind::pinned)),
      words_(device_->allocate(Bytes{2 * sizeof(u32)}, MemoryKind::device)),
      deadline_(world.options().deadline),
      times_(world.host_timeline()
                 ? std::make_unique<StreamTimes>(*device_, world.host_timeline()->capacity())
                 : nullptr),
      stream_(std::move(stream)) {
  std::memset(note_.data(), 0, note_.size());
  device_->fill(words_.data(), 0, words_.size());
  shared_ = {
      .note = note_.as<StreamNote>(), .ended = words_.as<u32>(), .copied = words_.as<u32>() + 1};
  u32 const device = world.layout().first_device + own;
  heap_begin_ = world.heap().at(device, 0);
  heap_end_ = heap_begin_ + world.heap().spaces().stride();
  // Now: later a stream may wait, or be captured, when the driver is asked for memory.
  for (u32 other = 0; other < world.layout().device_count() && !far_; ++other)
    if (world.layout().far(own, other) && !stream_->on_host()) make_far_sender();
}

void EndpointState::end() {
  HidesHostCalls const hidden;
  auto const use = streams_->use_if_there();
  if (use) {
    finish();
    give_times(use->world());
    try {
      use->world().host().forget_counts(own_, id_.number);
    } catch (Error const& error) {
      warn(error.what());
    }
  }
  streams_->remove(id_);
  std::scoped_lock const lock(mutex_);
  if (failure_ && !told_)
    warn(fmt::format("an error of a stream that no call has thrown: {}", failure_->what()));
}

std::string EndpointState::subject() const {
  return name_.empty() ? fmt::format("stream {} of {}", id_.number, device_->name())
                       : fmt::format("stream '{}' of {}", name_, device_->name());
}

std::string EndpointState::said(std::string_view operation) const {
  return fmt::format("{}, {}", operation, subject());
}

void EndpointState::give_times(WorldState& world) {
  if (!times_ || !world.host_timeline()) return;
  try {
    auto& physical = *meshpost::physical(device_);
    auto const offset = backend(physical.kind()).clock_offset(physical);
    auto row = times_->take(device_->name(), subject(), offset);
    if (!row.spans.empty() || row.lost != 0) world.host_timeline()->add_row(std::move(row));
  } catch (Error const& error) {
    warn(error.what());
  }
}

// -- operations

void EndpointState::throw_failure() {
  std::scoped_lock const lock(mutex_);
  if (!failure_) return;
  told_ = true;
  throw Error(*failure_);
}

void EndpointState::use(WindowInfo const& window, std::string const& name) {
  std::scoped_lock const lock(mutex_);
  windows_.try_emplace(window.number, name);
}

void EndpointState::check_source(std::string const& operation, TypedPut const& put) {
  auto const refuse = [&](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, said(operation), std::move(cause), std::move(remedy));
  };
  u64 const bytes = put.count * put.element_bytes;
  auto const check = [&](void const* memory, u64 needed, std::string_view what) {
    auto const* const at = static_cast<char const*>(memory);
    if (at >= heap_begin_ && at < heap_end_ && needed <= static_cast<u64>(heap_end_ - at)) return;
    if (at >= known_begin_ && at < known_end_ && needed <= static_cast<u64>(known_end_ - at))
      return;
    auto const found = device_->locate(memory);
    if (!found.usable)
      refuse(fmt::format("{} at {} is memory that {} can't read", what, memory, device_->name()),
             "use memory of that device, or pinned memory (Device::allocate, cudaHostAlloc)");
    if (needed > found.extent)
      refuse(fmt::format("{} bytes were named at {}, {}; its allocation ends after {}", needed,
                         memory, what, found.extent),
             "name memory that is there");
    if (found.extent != ~u64{0}) known_begin_ = at, known_end_ = at + found.extent;
  };
  if (bytes != 0 && !put.source)
    refuse(fmt::format("{} elements were named at a null pointer", put.count),
           "give a span that points to memory");
  if (bytes != 0) check(put.source, bytes, "the source");
  if (put.units) check(put.units, sizeof(u64), "the count");
}

void EndpointState::send(char const* operation, StreamSend const& send) {
  guard(operation);
  auto const use_of_world = streams_->use(operation);
  auto& world = use_of_world.world();
  throw_failure();
  auto const found = Destinations(world, id_).of(operation, send);
  StreamPut put = found.near;
  if (send.put) {
    check_source(operation, *send.put);
    put.source = send.put->source;
    put.bytes = send.put->count * send.put->element_bytes;
    put.units = send.put->units, put.unit = send.put->element_bytes;
  }
  use(*send.window, found.window);
  if (found.touches_ranks) world.queue().let_wait_for_runs(*stream_);
  StreamTimes::Around const around(times_.get(), *stream_, operation, "send", put.bytes);
  if (found.far) send_far(operation, *found.far, put, found.before_runs);
  else stream_->put(shared_, put);
}

void EndpointState::make_far_sender() {
  far_ = std::make_unique<FarSender>(*device_, [this](std::exception_ptr const& why) {
    try {
      std::rethrow_exception(why);
    } catch (...) {
      fail(caught(said("send")));
    }
  });
}

void EndpointState::send_far(std::string const& operation, FarTarget const& target,
                             StreamPut const& put, bool until_taken) {
  if (stream_->on_host())
    return stream_->call([this, operation, target, put] {
      if (memory::load_relaxed(shared_.ended) != 0) return;
      try {
        target.write(0, put.source, put.size());
        target.notify();
      } catch (...) {
        memory::store_relaxed(shared_.ended, 1);
        fail(caught(said(operation)));
      }
    });
  if (!far_) make_far_sender();
  stream_->post(shared_, far_->ring(), far_->number_of(target), put, until_taken);
}

void EndpointState::wait(WindowInfo const& window, std::vector<Counts> const& awaited) {
  constexpr auto operation = "wait";
  guard(operation);
  auto const use_of_world = streams_->use(operation);
  throw_failure();
  std::map<u32, u64> counts;  // two of one tag would consume twice
  for (auto const& one : awaited) counts[one.tag.value] += one.count;
  if (counts.size() > AwaitedCounter::most)
    throw Error(
        Kind::bad_argument, said(operation),
        fmt::format("{} tags were named; it may be {}", counts.size(), AwaitedCounter::most),
        "wait for some of them first");
  std::vector<AwaitedCounter> words;
  words.reserve(counts.size());
  auto& world = use_of_world.world();
  Destinations const destinations(world, id_);
  std::string name;
  for (auto const& [tag, count] : counts)
    words.push_back(destinations.awaited(
        operation, window, {Tag{tag}, static_cast<u32>(std::min<u64>(count, ~u32{0}))}, name));
  if (words.empty()) return;
  use(window, name);
  if (note().waiting == 0) {
    std::scoped_lock const lock(mutex_);
    failures_before_ = world.queue().failures();
  }
  StreamTimes::Around const around(times_.get(), *stream_, operation, "wait", 0);
  stream_->await(shared_, words);
}

// -- the end of its work

void EndpointState::await_work() {
  stream_->synchronize();
  if (far_) far_->drain();
}

void EndpointState::synchronize() {
  constexpr auto operation = "synchronize";
  guard(operation);
  auto const use_of_world = streams_->use(operation);
  if (stream_->captures())
    throw Error(Kind::misuse, said(operation), "the stream is captured",
                "end the capture before (cudaStreamEndCapture)");
  await_work();
  std::optional<Error> failure;
  {
    std::scoped_lock const lock(mutex_);
    failure = failure_;
  }
  if (!failure) return;
  bool const of_loss = [&] {
    std::scoped_lock const lock(mutex_);
    return of_loss_;
  }();
  if (auto const last = note(); of_loss && last.waiting == 2) failure = ended_wait(last, *failure);
  begin_anew(use_of_world.world());
  throw Error(*failure);
}

std::string EndpointState::so_far(StreamNote const& note) {
  return fmt::format("{} of {} notifications of tag {} had come", static_cast<i32>(note.come),
                     note.count, note.tag);
}

Error EndpointState::ended_wait(StreamNote const& note, Error const& loss) const {
  return {loss.kind(), said(note), fmt::format("{}: {}", so_far(note), loss.cause()),
          loss.remedy()};
}

// Nothing of the stream is in progress.
void EndpointState::begin_anew(WorldState& world) {
  u32 const none = 0;
  device_->write(shared_.ended, &none, Bytes{sizeof none});
  world.host().forget_counts(own_, id_.number);
  if (far_) far_->drop(false);
  // The supervisor sees all of that at once, or nothing.
  std::scoped_lock const lock(mutex_);
  memory::store(&shared_.note->waiting, 0u, Order::system);
  memory::store(&shared_.note->poisoned, 0u, Order::system);
  failure_.reset();
  told_ = of_loss_ = false;
}

void EndpointState::finish() {
  try {
    if (stream_->captures()) return;  // nothing of that is in progress
    await_work();
  } catch (Error const& error) {
    fail(error);
  }
}

void EndpointState::release(u32 window) {
  bool uses = false;
  {
    std::scoped_lock const lock(mutex_);
    uses = windows_.contains(window);
  }
  if (uses && stream_->captures())
    throw Error(Kind::misuse, said(fmt::format("free window {}", window)),
                "the stream that uses it is captured", "end the capture before");
  finish();
  std::scoped_lock const lock(mutex_);
  windows_.erase(window);
}

// -- supervision

StreamNote EndpointState::note() const {
  auto* const there = shared_.note;
  StreamNote copy{};
  copy.waiting = memory::load_acquire(&there->waiting);
  copy.window = memory::load_relaxed(&there->window);
  copy.tag = memory::load_relaxed(&there->tag);
  copy.count = memory::load_relaxed(&there->count);
  copy.come = memory::load_relaxed(&there->come);
  copy.consumed = memory::load_relaxed(&there->consumed);
  copy.all = memory::load_relaxed(&there->all);
  return copy;
}

// It takes no lock of the World: others hold that while they wait for a device or a process.
std::string EndpointState::said(StreamNote const& note) const {
  std::scoped_lock const lock(mutex_);
  auto const found = windows_.find(note.window);
  return fmt::format(
      "{}, {}", said("wait"),
      found == windows_.end() ? fmt::format("window {}", note.window) : found->second);
}

void EndpointState::fail(Error error, bool of_loss) {
  std::scoped_lock const lock(mutex_);
  if (failure_) return;
  failure_ = std::move(error);
  of_loss_ = of_loss;
  memory::store(&shared_.note->poisoned, 1u, Order::system);
}

void EndpointState::look(WorldState& world, std::optional<Loss> const& loss) {
  u64 failures_before = 0;
  {
    std::scoped_lock const lock(mutex_);
    if (failure_) return deadline_.renew();
    failures_before = failures_before_;
  }
  // It may have begun to wait just now.
  if (loss) return fail(world.group().processes().lost_error(said("use"), *loss), true);
  auto const now = note();
  if (now.waiting == 0) return deadline_.renew();
  if (auto const run = world.queue().failure_behind(failures_before))
    return fail(
        {run->kind(), said(now),
         fmt::format("{} when a run failed: {}: {}", so_far(now), run->operation(), run->cause()),
         run->remedy()});
  u64 const progress =
      ((u64{now.consumed} * 31 + now.all) * 65599 + now.tag) * 65599 + now.window + 1;
  if (!deadline_.ends(progress) || watched_by_debugger(deadline_)) return;
  std::string remedy =
      "see that somebody notifies this stream with this tag, or give a longer deadline "
      "(MESHPOST_DEADLINE)";
  if (!stream_->on_host())
    remedy +=
        "; if what it waits for is on another stream of this GPU, or needs a kernel that is not "
        "loaded, let it come first, or raise CUDA_DEVICE_MAX_CONNECTIONS, or set "
        "CUDA_MODULE_LOADING=EAGER";
  fail({Kind::deadline, said(now),
        fmt::format("{}, and none for {}", so_far(now), deadline_.text()), remedy});
}

}  // namespace meshpost::detail
