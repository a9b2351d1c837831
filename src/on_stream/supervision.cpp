// The waits of a stream, as its host sees them, and how they end.
#include <fmt/format.h>

#include <utility>

#include "on_stream/endpoint.hpp"

namespace meshpost::detail {
namespace {

char const* name_of(StreamNote const& note) {
  switch (note.operation) {
    case StreamNote::send: return "send";
    case StreamNote::receive: return "receive";
    case StreamNote::credit: return "StreamExchange::start";
    case StreamNote::arrival: return "StreamExchange::finish";
    default: return "wait";
  }
}
char const* remedy_for(StreamNote const& note, u32 own) {
  if (note.operation != StreamNote::wait && note.peer == own)
    return "let another stream do it, or send first: what this stream does behind it comes too "
           "late";
  switch (note.operation) {
    case StreamNote::send:
      return "see that the other stream receives; if both send first, let one receive first, or "
             "make the message window with more slots";
    case StreamNote::receive: return "see that the other stream sends with this tag";
    case StreamNote::credit:
    case StreamNote::arrival: return "start and finish the exchange on all devices, equally often";
    default: return "see that somebody notifies this stream with this tag";
  }
}

}  // namespace

StreamNote EndpointState::note() const {
  auto* const there = shared_.note;
  StreamNote copy{};
  copy.waiting = memory::load_acquire(&there->waiting);
  copy.operation = memory::load_relaxed(&there->operation);
  copy.window = memory::load_relaxed(&there->window);
  copy.peer = memory::load_relaxed(&there->peer);
  copy.tag = memory::load_relaxed(&there->tag);
  copy.count = memory::load_relaxed(&there->count);
  copy.come = memory::load_relaxed(&there->come);
  copy.consumed = memory::load_relaxed(&there->consumed);
  copy.all = memory::load_relaxed(&there->all);
  return copy;
}

// It takes no lock of the World: others hold that while they wait for a device or a process.
std::string EndpointState::said(StreamNote const& note) const {
  return fmt::format("{}, {}", said(name_of(note)), named(note.window));
}

std::string EndpointState::named(u32 window) const {
  std::scoped_lock const lock(mutex_);
  auto const found = windows_.find(window);
  return found == windows_.end() ? fmt::format("window {}", window) : found->second;
}

u64 EndpointState::epoch() const {
  std::scoped_lock const lock(mutex_);
  return epoch_;
}

void EndpointState::fail(Error error) { fail(std::move(error), epoch()); }

// Nothing if the program was told of a failure after that epoch: it goes on with a fresh stream.
void EndpointState::fail(Error error, u64 epoch, bool of_loss) {
  std::scoped_lock const lock(mutex_);
  if (failure_ || epoch != epoch_) return;
  failure_ = std::move(error);
  of_loss_ = of_loss;
  memory::store(&shared_.note->poisoned, 1u, Order::system);
}

std::optional<std::string> EndpointState::waits() const {
  {
    std::scoped_lock const lock(mutex_);
    if (failure_ && !gave_up_.empty()) return "also waited: " + gave_up_;
  }
  auto const now = note();
  if (now.waiting != StreamNote::yes) return std::nullopt;
  return fmt::format("also waits: {}: {}", said(now), so_far(now));
}

// Of a receive that has ended: what has come instead. Only when the stream does nothing: a GPU
// whose streams wait may copy nothing to the host.
std::string EndpointState::other_messages(WorldState& world, StreamNote const& note) const {
  if (note.operation != StreamNote::receive || note.come != 0) return {};
  std::optional<StreamCall> call;
  {
    std::scoped_lock const lock(mutex_);
    auto const found = message_windows_.find(note.window);
    if (found != message_windows_.end()) call = found->second;
  }
  if (!call) return {};
  std::string text;
  try {
    for (auto const& [peer, tag] : Destinations(world, id_).unreceived_messages(*call))
      text += fmt::format("\n  a message with tag {} has come from {}", tag.value,
                          stream_of(word_of(peer)));
  } catch (Error const&) {  // the window, or the device, is gone: there is no such line
    text.clear();
  }
  return text;
}

void EndpointState::look(WorldState& world, std::optional<Loss> const& loss) {
  u64 failures_before = 0, epoch = 0;
  {
    std::scoped_lock const lock(mutex_);
    if (failure_) return deadline_.renew();
    failures_before = failures_before_;
    epoch = epoch_;
  }
  // It may have begun to wait just now.
  if (loss) return fail(world.group().processes().lost_error(said("use"), *loss), epoch, true);
  find_misfit(epoch);
  auto const now = note();
  if (now.waiting == StreamNote::no) return deadline_.renew();
  if (auto const run = world.queue().failure_behind(failures_before))
    return fail(
        {run->kind(), said(now),
         fmt::format("{} when a run failed: {}: {}", so_far(now), run->operation(), run->cause()),
         run->remedy()},
        epoch);
  u64 const progress =
      ((u64{now.consumed} * 31 + now.all) * 65599 + now.tag) * 65599 + now.window + 1;
  if (!deadline_.ends(progress) || watched_by_debugger(deadline_)) return;
  std::string remedy = fmt::format("{}, or give a longer deadline (MESHPOST_DEADLINE)",
                                   remedy_for(now, word_of(id_)));
  if (!stream_->on_host())
    remedy +=
        "; if what it waits for is on another stream of this GPU, or needs a kernel that is not "
        "loaded, let it come first, or raise CUDA_DEVICE_MAX_CONNECTIONS, or set "
        "CUDA_MODULE_LOADING=EAGER";
  auto cause =
      fmt::format("{}, and {} for {}", so_far(now),
                  now.operation == StreamNote::send ? "nothing" : "none", deadline_.text());
  auto const own = waits();
  for (auto const& line : streams_->waiting())
    if (line != own) cause += "\n  " + line;
  cause += world.group().silence();
  auto line = fmt::format("{}: {}", said(now), so_far(now));  // said() locks too
  {
    // Those that end after this one name it too.
    std::scoped_lock const lock(mutex_);
    gave_up_ = std::move(line);
  }
  fail({Kind::deadline, said(now), cause, remedy}, epoch);
}

}  // namespace meshpost::detail
