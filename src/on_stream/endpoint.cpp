#include "on_stream/endpoint.hpp"

#include <fmt/format.h>

#include <cstring>
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
  auto stream = adopt ? device.adopt_stream(native) : device.make_urgent_stream();
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
      words_(device_->allocate(Bytes{StreamWords::words * sizeof(u32)}, MemoryKind::device)),
      deadline_(world.options().deadline),
      times_(world.host_timeline()
                 ? std::make_unique<StreamTimes>(*device_, world.host_timeline()->capacity())
                 : nullptr),
      stream_(std::move(stream)) {
  std::memset(note_.data(), 0, note_.size());
  device_->fill(words_.data(), 0, words_.size());
  auto* const words = words_.as<u32>();
  shared_ = {
      .note = note_.as<StreamNote>(), .ended = words, .copied = words + 1, .moved = words + 2};
  u32 const device = world.layout().first_device + own;
  heap_begin_ = world.heap().at(device, 0);
  heap_end_ = heap_begin_ + world.heap().spaces().stride();
  // Now: later a stream may wait, or be captured, when the driver is asked for memory.
  for (u32 other = 0; other < world.layout().device_count() && !far_; ++other)
    if (world.layout().far(own, other) && !stream_->on_host()) make_far_sender(world.host().far());
}

void EndpointState::end() {
  HidesHostCalls const hidden;
  auto const use = streams_->use_if_there();
  if (use) {
    close();
    give_times(use->world());
    try {
      use->world().host().forget_counts(own_, id_.number);
    } catch (Error const& error) {
      warn(error.what());
    }
  }
  bool failed = false;
  {
    std::scoped_lock const lock(mutex_);
    over_ = true;
    failed = failure_.has_value();
  }
  if (failed) streams_->tear(id_, torn_by_failure());
  streams_->remove(id_);  // the number is free
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
  } catch (std::exception const& error) {  // the timeline lacks the row
    warn(fmt::format("{} is not on the timeline: {}", subject(), error.what()));
  }
}

// -- operations

// Of each call. \throws Error of an operation before
Streams::Use EndpointState::begin(char const* operation) {
  guard(operation);
  auto use = streams_->use(operation);
  std::scoped_lock const lock(mutex_);
  if (over_)
    throw Error(Kind::misuse, said(operation), "its StreamEndpoint does not exist any more",
                "keep the StreamEndpoint alive");
  if (!failure_) return use;
  told_ = true;
  throw Error(*failure_);
}

// If a failure of this stream has torn it.
void EndpointState::refuse_torn(WorldState& world, char const* operation, std::string const& name,
                                Torn const& torn) {
  if (!streams_->torn(id_, torn.window)) return;
  auto const text = fmt::format("{}, {}", said(operation), name);
  // After a loss a new one can't be made.
  if (auto const loss = world.group().alone() ? std::nullopt : world.group().processes().lost())
    throw world.group().processes().lost_error(text, *loss);
  throw Error(Kind::misuse, text,
              fmt::format("this stream {} the {} before one of its operations failed; {}", torn.did,
                          torn.what, torn.why),
              fmt::format("free the {}, and make a new one", torn.what));
}

void EndpointState::use(WorldState& world, StreamCall const& call, std::string const& name) {
  u32 const window = call.window.number;
  bool const message = call.messages.devices != 0;
  if (message)
    refuse_torn(world, name_of(call.verb), name,
                {window, "message window", "used", "a message may be half there"});
  std::scoped_lock const lock(mutex_);
  if (message) message_windows_.try_emplace(window, call);
  windows_.try_emplace(window, name);
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
  find_misfit(epoch());
  auto [failure, of_loss] = [&] {
    std::scoped_lock const lock(mutex_);
    return std::pair(failure_, of_loss_);
  }();
  if (!failure) return;
  if (auto const last = note(); last.waiting == StreamNote::ended) {
    if (of_loss) failure = ended_wait(last, *failure);
    if (auto const others = other_messages(use_of_world.world(), last); !others.empty())
      failure = Error(failure->kind(), failure->operation(), failure->cause() + others,
                      failure->remedy());
  }
  begin_anew(use_of_world.world());
  throw Error(*failure);
}

std::string EndpointState::stream_of(u32 peer) const {
  StreamId const id = stream_of_word(peer);
  auto const name = streams_->name_of(id);
  return fmt::format("stream {} of device {}{}", id.number, id.device,
                     name.empty() ? "" : fmt::format(" ('{}')", name));
}

std::string EndpointState::so_far(StreamNote const& note) const {
  bool const begun = note.come != 0;
  if (note.operation == StreamNote::send)
    return fmt::format(
        "the message window has no room{}: {} has not received what was sent with "
        "tag {}",
        begun ? fmt::format(" for chunk {} of {}", note.come + 1, note.count) : "",
        stream_of(note.peer), note.tag);
  if (note.operation == StreamNote::arrival)
    return fmt::format("nothing of this step had come from {}, which has not started it",
                       stream_of(note.peer));
  if (note.operation == StreamNote::credit)
    return fmt::format("{} had not finished the step before the last one", stream_of(note.peer));
  if (note.operation == StreamNote::receive && begun)
    return fmt::format("only a part of a message with tag {} had come from {}", note.tag,
                       stream_of(note.peer));
  if (note.operation == StreamNote::receive)
    return fmt::format("no message with tag {} had come from {}", note.tag, stream_of(note.peer));
  return fmt::format("{} of {} notifications of tag {} had come", static_cast<i32>(note.come),
                     note.count, note.tag);
}

std::set<u32> EndpointState::torn_by_failure() const {
  std::scoped_lock const lock(mutex_);
  auto used = exchange_windows_;
  for (auto const& [window, call] : message_windows_) used.insert(window);
  return used;
}

// A message that does not fit: the stream has found it.
void EndpointState::find_misfit(u64 epoch) {
  auto const& misfit = shared_.note->misfit;
  if (memory::load_acquire(&misfit.found) == 0) return;
  auto const load = [](u64 const& word) { return memory::load_bits_acquire(&word, sizeof word); };
  u64 const bytes = load(misfit.bytes), room = load(misfit.room), unit = load(misfit.unit);
  auto const why = unit != 0 && bytes <= room
                       ? fmt::format("that is no whole number of elements of {} bytes", unit)
                       : fmt::format("the target has {}", room);
  fail({Kind::bad_argument,
        fmt::format("{}, {}", said("receive"), named(memory::load_relaxed(&misfit.window))),
        fmt::format("a message of {} bytes with tag {} came from {}; {}", bytes,
                    memory::load_relaxed(&misfit.tag),
                    stream_of(memory::load_relaxed(&misfit.peer)), why),
        "receive as many elements as are sent, of the same size, or at least as many with a count"},
       epoch);
}

Error EndpointState::ended_wait(StreamNote const& note, Error const& loss) const {
  return {loss.kind(), said(note), fmt::format("{}: {}", so_far(note), loss.cause()),
          loss.remedy()};
}

// Nothing of the stream is in progress.
void EndpointState::begin_anew(WorldState& world) {
  device_->fill(words_.data(), 0, words_.size());
  world.host().forget_counts(own_, id_.number);
  if (far_) far_->take_again();
  streams_->tear(id_, torn_by_failure());
  // The supervisor sees all of that at once, or nothing. Its findings of the last epoch are
  // dropped.
  std::scoped_lock const lock(mutex_);
  memory::store(&shared_.note->waiting, u32{StreamNote::no}, Order::system);
  memory::store(&shared_.note->misfit.found, 0u, Order::system);
  memory::store(&shared_.note->poisoned, 0u, Order::system);
  message_windows_.clear();
  exchange_windows_.clear();
  failure_.reset();
  gave_up_.clear();
  told_ = of_loss_ = false;
  ++epoch_;
}

void EndpointState::finish() {
  try {
    if (stream_->captures()) return;  // nothing of that is in progress
    await_work();
    find_misfit(epoch());
  } catch (Error const& error) {
    if (far_) far_->abandon();
    fail(error);
  }
}

// A captured stream has not drained.
void EndpointState::close() {
  finish();
  if (far_) far_->abandon();
}

void EndpointState::release(u32 window) {
  bool uses = false;
  {
    std::scoped_lock const lock(mutex_);
    uses = windows_.contains(window);
  }
  if (uses && stream_->captures())
    throw Error(Kind::misuse, said(fmt::format("free {}", named(window))),
                "the stream that uses it is captured", "end the capture before");
  finish();
  std::scoped_lock const lock(mutex_);
  windows_.erase(window);
  message_windows_.erase(window);
  exchange_windows_.erase(window);
}

}  // namespace meshpost::detail
