// Which thread supervises a run, and when.
//
// Runs wait in their World's queue; the first one has its turn. The thread that launches a run
// begins it, if no wait is needed. The thread that waits for a run supervises it to its end. So a
// run that is launched and waited for does not pass between threads. The World's supervisor thread
// supervises runs that nobody waits for. It polls about every millisecond while there are runs, and
// sleeps when there have been none for a while. So a launch seldom wakes it.
//
// `driven` says that some thread supervises a run; no other thread touches it then. A run has its
// World as long as it is in the queue, because a World ends only when its queue is empty.
#include "rma/runs/launching/queue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/caught.hpp"
#include "base/fork.hpp"
#include "base/host_hooks.hpp"
#include "rma/runs/launching/run.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t most_queued = 64;  // on GPUs: a further launch waits, before the driver does
constexpr std::chrono::milliseconds tick{1}, long_tick{20}, attentive{100};

}  // namespace

void guard(std::string_view operation, std::string_view of) {
  if (begin_use() && !inside_kernel()) return;
  auto const what = std::string(operation) + (of.empty() ? "" : " ") + std::string(of);
  refuse_after_fork(what);
  throw Error(Kind::misuse, what, "it was called from inside a kernel",
              "call it from the host, before or after the run");
}

// A GPU's stream may wait only for work that is queued on the device already. If it waited for a
// later launch, this could hang. Streams share hardware queues, and the launch could lie behind the
// wait. The caller may then block in a copy of pageable memory on that stream. CUDA then blocks
// other threads that load a kernel or make memory, as the launch does. The host's work behind the
// kernels' end, if it brings messages, could hang in the same way. In such cases the caller itself
// waits.
void RunQueue::let_streams_wait(std::vector<Stream*> const& streams,
                                std::shared_ptr<RunRecord> const& record) {
  std::vector<std::shared_ptr<Event>> ends;
  if (world_.queues_runs() && !record->one_by_one) {
    std::unique_lock lock(record->mutex);
    record->changed.wait(lock, [&] { return record->launched; });
    ends = record->ends;
  } else {
    ends.push_back(end_of(record));
    if (!std::ranges::all_of(streams, &Stream::on_host)) return ends.front()->wait();
  }
  for (auto* const stream : streams)
    for (auto const& end : ends) stream->wait(end);
}

std::shared_ptr<RunRecord> RunQueue::enqueue(std::shared_ptr<RunRecord> const& record,
                                             bool awaited) {
  auto const& launch = record->launch;
  record->world = &world_;
  record->one_by_one = record->graph && !RunSupervisor::needs_no_host(world_, *record);
  for (auto* const stream : launch.streams) record->before.push_back(stream->record());
  if (world_.queues_runs()) {
    std::unique_lock lock(mutex_);
    help(lock, [this] { return queue_.size() < most_queued; });
  }
  bool first = false, begun = false;
  {
    std::scoped_lock const launching(launching_);
    {
      std::scoped_lock const of_failures(failures_mutex_);
      failures_at_launch_ = failures_;
    }
    bool behind = false;
    {
      std::scoped_lock const lock(mutex_);
      first = queue_.empty();
      behind =
          !first && queue_.back()->others_may_queue && RunSupervisor::may_queue(world_, *record);
      record->has_turn = record->driven = first;
      queue_.push_back(record);
      record->in_queue = true;
    }
    begun = (first || behind) && begin(record, behind);
  }
  if (first) let_go(*record);
  // Streams, or other processes, wait for the run.
  wake_supervisor(!launch.streams.empty() || (first && !begun && !awaited));
  if (!launch.streams.empty()) let_streams_wait(launch.streams, record);
  return record;
}

// While launching_ is held. Called by the thread that drives the run, or if it is behind others
// that were begun, by the thread that launches it. Errors stay in the record.
bool RunQueue::begin(std::shared_ptr<RunRecord> const& record, bool behind) {
  try {
    record->run.reset(new RunSupervisor(world_, record));
    if (!record->run->begin(true, behind)) {
      record->run.reset();
      return false;
    }
    record->others_may_queue =
        RunSupervisor::may_queue(world_, *record) && record->run->is_launched();
  } catch (...) {
    record->run.reset();
    record->error = caught(fmt::format("run {}", record->name()));
  }
  return true;
}

bool RunQueue::begin_at_once(std::shared_ptr<RunRecord> const& record) {
  std::scoped_lock const launching(launching_);
  return record->run || record->error || begin(record, false);
}

void RunQueue::end_queued(RunRecord const& failed, Error const& error,
                          std::function<void(u32 last_run)> const& clean_up) {
  std::scoped_lock const launching(launching_);
  std::vector<std::shared_ptr<RunRecord>> behind;
  {
    std::scoped_lock const lock(mutex_);
    // Several processes may have launched different numbers of runs by now.
    for (auto const& record : queue_)
      if (record.get() != &failed && group_.alone()) behind.push_back(record);
  }
  for (auto const& record : behind) {
    if (record->run) record->run->await_end();
    record->run.reset();
    record->others_may_queue = false;
    record->error = Error(error.kind(), fmt::format("run {}", record->name()),
                          fmt::format("it was queued behind a run that failed: {}: {}",
                                      error.operation(), error.cause()),
                          error.remedy());
  }
  clean_up(runs_);
}

// Supervises a run that the calling thread drives, to its end.
void drive(std::shared_ptr<RunRecord> const& record) {
  auto& world = *record->world;
  auto& queue = world.queue();
  auto error = record->error;  // it has not begun, or was ended behind another
  if (!error) try {
      for (;;) {
        if (!record->run) {
          record->run.reset(new RunSupervisor(world, record));
          record->run->begin();
        }
        record->run->end();
        if (!record->has_more_steps()) break;
        record->run.reset();
        record->take_step(record->step + 1);
      }
    } catch (...) {
      error = caught(fmt::format("run {}", record->name()));
    }
  record->run.reset();
  record->end();
  {
    std::scoped_lock const lock(record->mutex);
    queue.pin();
    record->world = nullptr;
  }
  auto const next = queue.leave();
  {
    std::scoped_lock const lock(record->mutex);
    record->error = std::move(error);
    record->done = true;
    record->changed.notify_all();
  }
  if (next) {
    bool const begun = queue.begin_at_once(next);
    queue.let_go(*next);
    queue.wake_supervisor(!begun || !next->launch.streams.empty());
  }
  queue.unpin();
}

std::shared_ptr<RunRecord> RunQueue::leave() {
  std::scoped_lock const lock(mutex_);
  queue_.front()->in_queue = false;
  queue_.pop_front();
  changed_.notify_all();
  if (queue_.empty()) return nullptr;
  auto const& next = queue_.front();
  std::scoped_lock const of_record(next->mutex);
  next->has_turn = next->driven = true;
  return next;
}

void RunQueue::unpin() {
  std::scoped_lock const lock(mutex_);
  if (--pins_ == 0) changed_.notify_all();
}

void RunQueue::help(std::unique_lock<std::mutex>& lock, std::function<bool()> const& enough) {
  ++helpers_;  // before it looks: a thread that lets go of a run after that tells it
  while (!queue_.empty() && !enough()) {
    auto const first = queue_.front();
    if (first->try_to_drive()) {
      lock.unlock();
      drive(first);
      lock.lock();
    } else {
      changed_.wait(lock);
    }
  }
  --helpers_;
}

void RunQueue::let_go(RunRecord& record) {
  {
    std::scoped_lock const lock(record.mutex);
    record.driven = false;
  }
  if (helpers_.load() == 0) return;
  std::scoped_lock const lock(mutex_);
  changed_.notify_all();
}

void RunQueue::help(std::shared_ptr<RunRecord> const& record) {
  std::unique_lock lock(mutex_);
  help(lock, [&] { return !record->in_queue; });
}

std::unique_lock<std::mutex> RunQueue::idle() {
  std::unique_lock lock(mutex_);
  help(lock, [] { return false; });
  return lock;
}

// If the host takes part in all runs, it waits for none.
std::unique_lock<std::mutex> RunQueue::turn() {
  std::unique_lock lock(mutex_);
  help(lock, [this] {
    return std::ranges::all_of(queue_, [](auto const& record) { return record->launch.with_host; });
  });
  return lock;
}

void RunQueue::let_wait_for_runs(Stream& stream) {
  std::shared_ptr<RunRecord> last;
  {
    std::scoped_lock const lock(mutex_);
    for (auto const& record : queue_)
      if (!record->launch.with_host) last = record;
  }
  if (!last || stream.captures()) return;
  wake_supervisor(true);  // else perhaps nobody supervises it
  let_streams_wait({&stream}, last);
}

bool RunQueue::seems_idle() {
  std::unique_lock const lock(mutex_, std::try_to_lock);
  return lock && queue_.empty();
}

u32 RunQueue::next_runs(u32 count) {
  runs_ += count;
  if (!group_.alone()) group_.processes().come_to(group_.channel(), runs_);
  return runs_;
}

void RunQueue::go_on_behind(u32 run) {
  runs_ = run;
  group_.processes().come_to(group_.channel(), runs_);
}

// -- failures, for hosts that wait for ranks

void RunQueue::has_failed(Error const& error) {
  std::scoped_lock const lock(failures_mutex_);
  ++failures_;
  last_failure_ = error;
}

std::optional<Error> RunQueue::failure_behind(u64 before) const {
  std::scoped_lock const lock(failures_mutex_);
  return failures_ > before ? last_failure_ : std::nullopt;
}

u64 RunQueue::failures() const {
  std::scoped_lock const lock(failures_mutex_);
  return failures_;
}

u64 RunQueue::failures_before_last_launch() const {
  std::scoped_lock const lock(failures_mutex_);
  return failures_at_launch_;
}

// -- the supervisor's thread

void RunQueue::wake_supervisor(bool urgent) {
  if (!urgent && !supervisor_sleeps_.load(std::memory_order_relaxed)) return;
  std::scoped_lock const lock(mutex_);
  urgent_ |= urgent;
  if (urgent || !queue_.empty()) supervisor_wakes_.notify_one();
}

void RunQueue::begin_thread() {
  hooks::at("start the supervisor's thread");
  supervisor_ = std::thread([this] { supervise(); });
}

void RunQueue::end_thread() {
  {
    std::scoped_lock const lock(mutex_);
    closing_ = true;
  }
  supervisor_wakes_.notify_all();
  if (supervisor_.joinable()) supervisor_.join();
}

void RunQueue::await_unpinned() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return pins_ == 0; });
}

void RunQueue::supervise() {
  std::unique_lock lock(mutex_);
  std::shared_ptr<RunRecord> seen;
  auto last = Clock::now();
  auto const rest = [&](std::chrono::milliseconds length) {
    supervisor_wakes_.wait_for(lock, length, [&] { return closing_ || urgent_; });
  };
  for (;;) {
    if (queue_.empty()) {
      if (closing_) return;
      urgent_ = false;
      seen.reset();
      if (Clock::now() - last < attentive) {
        rest(tick);
        continue;
      }
      supervisor_sleeps_ = true;
      supervisor_wakes_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      supervisor_sleeps_ = false;
    }
    if (queue_.empty()) continue;
    last = Clock::now();
    auto first = queue_.front();
    // The thread that launched it may be about to wait for it.
    if (first != seen && !urgent_ && !closing_) {
      seen = first;
      first.reset();
      rest(tick);
      continue;
    }
    urgent_ = false;
    if (!first->try_to_drive()) {
      first.reset();
      changed_.wait_for(lock, long_tick);  // until it is over, even if the World is to end
      continue;
    }
    lock.unlock();
    drive(first);
    first.reset();
    lock.lock();
  }
}

}  // namespace meshpost::detail
