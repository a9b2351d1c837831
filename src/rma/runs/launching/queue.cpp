// Who sees to a run, and when.
//
// Runs wait in their World's queue, and the first one's turn it is. It is begun by whoever launches
// it, if nobody has to be waited for, and seen to its end by whoever waits for it: so a run that is
// launched and waited for passes from no thread to another. What nobody waits for the World's
// supervisor thread sees to. It looks about every millisecond while there are runs, and sleeps when
// there have been none for a while; so a launch wakes it seldom.
//
// `driven` says that some thread sees to a run; nobody else touches it then. A run has its World as
// long as it is in the queue, for a World ends when that is empty.
#include <fmt/format.h>

#include <algorithm>

#include "base/caught.hpp"
#include "rma/runs/launching/run.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t most_queued = 64;  // on GPUs: a launch beyond waits, before the driver does
constexpr std::chrono::milliseconds tick{1}, long_tick{20}, attentive{100};

// The end of a run's kernels, well or not, as streams wait for it.
class RunEnd : public Event {
 public:
  explicit RunEnd(std::shared_ptr<RunRecord> record) : record_(std::move(record)) {}
  bool done() override {
    std::scoped_lock const lock(record_->mutex);
    return record_->ended;
  }
  void wait() override {
    std::unique_lock lock(record_->mutex);
    record_->changed.wait(lock, [this] { return record_->ended; });
  }
  void then(std::function<void()> action) override {
    {
      std::scoped_lock const lock(record_->mutex);
      if (!record_->ended) {
        record_->at_end.push_back(std::move(action));
        return;
      }
    }
    action();
  }

 private:
  std::shared_ptr<RunRecord> record_;
};

}  // namespace

void RunRecord::launch_is_done(std::vector<std::shared_ptr<Event>> of_kernels) {
  std::scoped_lock const lock(mutex);
  ends = std::move(of_kernels);
  launched = true;
  changed.notify_all();
}

void RunRecord::end() {
  std::vector<std::function<void()>> actions;
  {
    std::scoped_lock const lock(mutex);
    launched = ended = true;
    actions.swap(at_end);
    changed.notify_all();
  }
  for (auto const& action : actions) action();
}

bool RunRecord::try_to_drive() {
  std::scoped_lock const lock(mutex);
  if (!has_turn || driven || done) return false;
  return driven = true;
}

void KeepIfItHangs::operator()(RunSupervisor* run) const {
  if (run->must_be_kept()) net::keep_for_ever(run);
  else delete run;
}

// A GPU's stream may wait only for what is queued on the device already. If it waited for a launch
// still to come, this could hang: streams share hardware queues, and the launch could come to lie
// behind the wait; and while the caller then blocks in a copy of pageable memory on that stream,
// CUDA blocks other threads that load a kernel or make memory, as the launch does. So does what the
// host does behind the kernels' end, where it brings messages: there the caller itself waits.
void WorldState::let_streams_wait(std::vector<Stream*> const& streams,
                                  std::shared_ptr<RunRecord> const& record) {
  std::vector<std::shared_ptr<Event>> ends;
  if (queues_runs() && !record->one_by_one) {
    std::unique_lock lock(record->mutex);
    record->changed.wait(lock, [&] { return record->launched; });
    ends = record->ends;
  } else {
    ends.push_back(std::make_shared<RunEnd>(record));
    if (!std::ranges::all_of(streams, &Stream::on_host)) return ends.front()->wait();
  }
  for (auto* const stream : streams)
    for (auto const& end : ends) stream->wait(end);
}

std::shared_ptr<RunRecord> WorldState::start(KernelImage const& image, void const* kernel,
                                             std::size_t bytes, Launch const& launch,
                                             bool awaited) {
  check_launch(image, launch);
  auto record = std::make_shared<RunRecord>();
  record->image = image;
  record->kernel = copy_of_kernel(kernel, bytes);
  record->launch = launch;
  return enqueue(record, awaited);
}

void WorldState::check_launch(KernelImage const& image, Launch const& launch) const {
  guard("launch", image.name);
  if (image.abi != abi_version)
    throw Error(Kind::version_mismatch, fmt::format("launch {}", image.name),
                fmt::format("it was compiled for ABI version {}, this library has {}", image.abi,
                            abi_version),
                "compile the kernel with the headers of the installed library");
  if (Dim3 const t = launch.threads; t.x != 0 && !layout_.devices.empty()) {
    u32 most = ~0u;
    for (auto const& device : layout_.devices) most = std::min(most, device->info().max_threads);
    auto const fits = [most](u64 threads) { return threads >= 1 && threads <= most; };
    if (!fits(t.x) || !fits(u64{t.x} * t.y) || !fits(u64{t.x} * t.y * t.z))
      throw Error(Kind::bad_argument, fmt::format("launch {}", image.name),
                  fmt::format("{} x {} x {} threads a rank were asked for; there may be 1 to {}",
                              t.x, t.y, t.z, most),
                  "use fewer threads, at least one in each direction");
  }
}

std::shared_ptr<RunRecord> WorldState::enqueue(std::shared_ptr<RunRecord> const& record,
                                               bool awaited) {
  auto const& launch = record->launch;
  record->world = this;
  record->one_by_one = record->graph && !RunSupervisor::needs_no_host(*this, *record);
  for (auto* const stream : launch.streams) record->before.push_back(stream->record());
  if (queues_runs()) {
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
          !first && queue_.back()->others_may_queue && RunSupervisor::may_queue(*this, *record);
      record->has_turn = record->driven = first;
      queue_.push_back(record);
      record->in_queue = true;
    }
    begun = (first || behind) && begin(record, behind);
  }
  if (first) let_go(*record);
  // Streams, or other processes, wait for it.
  wake_supervisor(!launch.streams.empty() || (first && !begun && !awaited));
  if (!launch.streams.empty()) let_streams_wait(launch.streams, record);
  return record;
}

// While launching_ is held. By who drives the run, or behind others that were begun, by who
// launches it. What fails stays in the record.
bool WorldState::begin(std::shared_ptr<RunRecord> const& record, bool behind) {
  try {
    record->run.reset(new RunSupervisor(*this, record));
    if (!record->run->begin(true, behind)) {
      record->run.reset();
      return false;
    }
    record->others_may_queue =
        RunSupervisor::may_queue(*this, *record) && record->run->is_launched();
  } catch (...) {
    record->run.reset();
    record->error = caught(fmt::format("run {}", record->name()));
  }
  return true;
}

bool WorldState::begin_at_once(std::shared_ptr<RunRecord> const& record) {
  std::scoped_lock const launching(launching_);
  return record->run || record->error || begin(record, false);
}

void WorldState::end_queued(RunRecord const& failed, Error const& error,
                            std::function<void(u32 last_run)> const& clean_up) {
  std::scoped_lock const launching(launching_);
  std::vector<std::shared_ptr<RunRecord>> behind;
  {
    std::scoped_lock const lock(mutex_);
    // Processes may have launched different numbers of runs by now.
    for (auto const& record : queue_)
      if (record.get() != &failed && peers_.alone()) behind.push_back(record);
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

// A run that the calling thread drives, to its end.
void drive(std::shared_ptr<RunRecord> const& record) {
  auto& world = *record->world;
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
    world.pin();
    record->world = nullptr;
  }
  auto const next = world.leave_queue();
  {
    std::scoped_lock const lock(record->mutex);
    record->error = error;
    record->done = true;
    record->changed.notify_all();
  }
  if (next) {
    bool const begun = world.begin_at_once(next);
    world.let_go(*next);
    world.wake_supervisor(!begun || !next->launch.streams.empty());
  }
  world.unpin();
}

// The first run is over. The next one, whose turn it is now, is the caller's to begin.
std::shared_ptr<RunRecord> WorldState::leave_queue() {
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

void WorldState::unpin() {
  std::scoped_lock const lock(mutex_);
  if (--pins_ == 0) changed_.notify_all();
}

void WorldState::help(std::unique_lock<std::mutex>& lock, std::function<bool()> const& enough) {
  ++helpers_;  // before it looks: who lets go of a run after that tells them
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

// From here on any thread may drive it.
void WorldState::let_go(RunRecord& record) {
  {
    std::scoped_lock const lock(record.mutex);
    record.driven = false;
  }
  if (helpers_.load() == 0) return;
  std::scoped_lock const lock(mutex_);
  changed_.notify_all();
}

void WorldState::help(std::shared_ptr<RunRecord> const& record) {
  std::unique_lock lock(mutex_);
  help(lock, [&] { return !record->in_queue; });
}

void WorldState::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  help(lock, [] { return false; });
}

// -- the supervisor's thread

void WorldState::wake_supervisor(bool urgent) {
  if (!urgent && !supervisor_sleeps_.load(std::memory_order_relaxed)) return;
  std::scoped_lock const lock(mutex_);
  urgent_ |= urgent;
  if (urgent || !queue_.empty()) supervisor_wakes_.notify_one();
}

void WorldState::end_supervisor() {
  {
    std::scoped_lock const lock(mutex_);
    closing_ = true;
  }
  supervisor_wakes_.notify_all();
  if (supervisor_.joinable()) supervisor_.join();
}

void WorldState::supervise() {
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
    // Who launched it may be about to wait for it.
    if (first != seen && !urgent_ && !closing_) {
      seen = first;
      first.reset();
      rest(tick);
      continue;
    }
    urgent_ = false;
    if (!first->try_to_drive()) {
      first.reset();
      changed_.wait_for(lock, long_tick);  // until it is over: even where the World is to end
      continue;
    }
    lock.unlock();
    drive(first);
    first.reset();
    lock.lock();
  }
}

}  // namespace meshpost::detail
