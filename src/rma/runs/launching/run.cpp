#include "rma/runs/launching/run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/caught.hpp"
#include "base/host_hooks.hpp"
#include "rma/runs/ending/end.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {
namespace {

u64 steady_ns() { return memory::clock_ns(); }

// If GPUs are taken in all processes or in none, process 0 lets one World after the other try.
std::unique_lock<std::mutex> take_turn(ProcessGroup const& group) {
  static auto* const turn = new std::mutex;
  if (group.number() != 0) return {};
  return std::unique_lock(*turn);
}

}  // namespace

RunSupervisor::RunSupervisor(WorldState& world, std::shared_ptr<RunRecord> const& record)
    : world_(world),
      kept_(record),
      record_(*record),
      layout_(world.layout()),
      group_(world.group()),
      proxy_(world.proxy()),
      count_(record_.graph && !record_.one_by_one ? static_cast<u32>(record_.graph->steps.size())
                                                  : 1) {}

RunSupervisor::~RunSupervisor() {
  give_back_devices();
  try {
    if (proxy_) proxy_->stop();
  } catch (...) {
    return;  // drain() was not reached: an error is being thrown already
  }
}

void RunSupervisor::give_back_devices() {
  if (std::exchange(host_knows_, false)) try {
      world_.endpoint().run_ends(has_commands_, ended_);
    } catch (...) {
      ended_ = false;  // a device is broken: its next user gets the error
    }
  if (std::exchange(has_devices_, false)) world_.locks().give_back();
  if (turn_.owns_lock()) turn_.unlock();
}

bool RunSupervisor::begins_at_once() const {
  return is_agreed_on() && (record_.before.empty() || world_.queues_runs());
}

// True if no exchange with other processes is needed.
bool RunSupervisor::is_agreed_on() const {
  auto const& agreement = world_.agreement();
  return group_.alone() || (ranks_meet_ && agreement.valid() && agreement.lanes(launch_));
}

// True if the host helps the run while it is in progress. Others must not be queued behind it on a
// GPU.
bool RunSupervisor::helped() const {
  return proxy_ || record_.launch.with_host || !world_.queues_runs() ||
         world_.agreement().crowded();
}

// True if only the devices work for the run. A kernel that finds its state in memory would find the
// next run's.
bool RunSupervisor::needs_no_host(WorldState const& world, RunRecord const& record) {
  auto const finds_its_state = [](auto const& one) {
    return one.image.arguments == Arguments::state_address;
  };
  return world.group().alone() && world.queues_runs() && !world.resources().split_states() &&
         !record.launch.with_host && world.trace_file(record.launch).empty() &&
         !(record.graph ? std::ranges::any_of(record.graph->steps, finds_its_state)
                        : finds_its_state(record));
}

// A run that waits for a user's stream could delay the end of one that failed.
bool RunSupervisor::may_queue(WorldState const& world, RunRecord const& record) {
  return needs_no_host(world, record) && !record.one_by_one && record.before.empty();
}

bool RunSupervisor::begin(bool at_once, bool behind) {
  behind_ = behind;
  if (!group_.alone()) launch_ = describe_launch();
  // A kernel of dCUDA need not say that it begins or ends.
  ranks_meet_ =
      world_.agreement().ranks_meet() && record_.image.arguments == Arguments::kernel_and_state;
  auto const use = helped() ? DeviceLocks::Use::alone : DeviceLocks::Use::shared;
  if (at_once && !(begins_at_once() && world_.locks().try_take(use))) return false;
  has_devices_ = at_once;
  // Before the locks: the streams may hold a run of another World on these devices.
  not_launched_ = wait_for_streams();
  if (world_.agreement().ranks_meet() && !world_.agreement().valid()) reset_world();
  agree();
  if (!has_devices_) {
    // Behind agree(): from here on this World does not wait for another process's launch.
    bool const may_differ = world_.agreement().crowded();
    if (may_differ) turn_ = take_turn(group_);
    world_.locks().take(use, group_, may_differ);
    has_devices_ = true;
  }
  number_ = world_.queue().runs() + count_;
  states_.reserve(layout_.own_count());
  // From here on every process takes part to the end. A failure in one of them ends the run in all,
  // and drain() tells them why.
  if (ranks_meet_)
    detector_.emplace(group_, number_, deadline(), launch_, world_.agreement().early());
  else if (!group_.alone()) detector_.emplace(group_, number_, deadline());
  world_.queue().next_runs(count_);
  begin_ = steady_ns();
  for (u32 d = 0; d < layout_.own_count(); ++d) states_.push_back(bare_state(d));
  take_part();
  return true;
}

// The processes agree on a launch. Launches that go well are agreed on once.
void RunSupervisor::agree() {
  bool const when_made = record_.graph && !record_.one_by_one;  // for each of a graph's runs
  if (not_launched_ && (when_made || group_.alone()))
    throw Error(*std::exchange(not_launched_, std::nullopt));
  if (when_made) return;
  auto const spec_of = [this](std::string_view kind) { return spec(kind, false); };
  auto const vote = [&] {
    if (not_launched_) throw Error(*std::exchange(not_launched_, std::nullopt));
    return world_.lanes().vote(spec_of, layout_, world_.heap());
  };
  if (group_.alone()) {
    gpus_have_lanes_ =
        world_.lanes().decide(record_.image, record_.launch, layout_, world_.heap(), spec_of);
    return;
  }
  if (is_agreed_on()) {
    if (auto const loss = group_.processes().gone())
      throw group_.processes().lost_error(launch_, *loss);
    gpus_have_lanes_ = *world_.agreement().lanes(launch_);
    return;
  }
  // From here on the counters of all processes are clear.
  gpus_have_lanes_ = LaneKeeper::agreed(group_.gather(launch_, vote));
  if (ranks_meet_) world_.agreement().remember(launch_, gpus_have_lanes_);
  // All have cleaned up after the last failure.
  else if (!world_.agreement().ranks_meet() && !world_.agreement().valid())
    world_.agreement().reset();
}

// After a run that failed, or calls that differ: all processes continue with the same run number,
// and with clean memory. None begins a run before all have done so, because a launch that all must
// agree on follows.
void RunSupervisor::reset_world() {
  u32 last = world_.queue().runs();
  for (auto const& runs : group_.exchange("begin anew", wire::Packer().value(last).take())) {
    u32 const others = wire::Unpacker(runs).value<u32>();
    if (static_cast<i32>(others - last) > 0) last = others;
  }
  world_.queue().go_on_behind(last);
  std::vector<RunState> states;
  states.reserve(layout_.own_count());
  for (u32 d = 0; d < layout_.own_count(); ++d) states.push_back(bare_state(d));
  world_.agreement().reset();
  clean_up_after_failure(world_, states, last);
}

void RunSupervisor::take_part() {
  try {
    if (not_launched_) throw Error(*std::exchange(not_launched_, std::nullopt));
    if (proxy_) proxy_->follow_heap(), proxy_->start(number_);
    // Other processes' ranks may add to counters here already, if they don't wait for this
    // process's ranks.
    has_commands_ =
        world_.endpoint().run_begins(record_.launch.with_host, !group_.alone() && !ranks_meet_);
    host_knows_ = true;
    prepare();
    launch();
  } catch (...) {
    not_launched_ = caught(operation());  // the others have launched, or will: end them
    if (detector_) detector_->poison(Reason::failed);
  }
}

void RunSupervisor::await_end() {
  for (auto const& state : states_) readers_.emplace_back(state.log);
  Watch watch(running_, readers_, deadline(), nullptr, nullptr);
  watch.poison(Reason::failed);
  watch.until_end();
  running_.clear();
  launches_.clear();
}

void RunSupervisor::end() {
  if (behind_) begin_ = std::max(begin_, world_.last_end());
  try {
    auto const ending = run_ranks();
    if (!proxy_) ranks_have_ended();  // else their messages may still be in flight
    finish(ending);
    ended_ = true;
    ranks_have_ended();
  } catch (...) {
    auto const error = caught(operation());
    world_.queue().has_failed(error);
    if (ended_well_) {  // only the host has failed
      ended_ = true;
      for (u32 d = 0; d < layout_.own_count(); ++d) forget_what_is_unread(d);
      world_.has_ended_at(end_);
      give_back_devices();
      throw Error(error);
    }
    world_.agreement().invalidate();
    // A thread that hangs may come back, and must then find its run poisoned. There is no other
    // run.
    if (!must_be_kept())
      world_.queue().end_queued(
          record_, error, [this](u32 last) { clean_up_after_failure(world_, states_, last); });
    give_back_devices();
    throw Error(error);
  }
  world_.has_ended_at(end_);
  give_back_devices();
}

// After its last run, if there are several: streams continue.
void RunSupervisor::ranks_have_ended() {
  if (!record_.has_more_steps()) record_.end();
}

void RunSupervisor::forget_what_is_unread(u32 own) const {
  try {
    world_.resources().memory(own).clear(*layout_.devices[own]);
  } catch (...) {  // the first error is the reason
    return;
  }
}

std::optional<Error> RunSupervisor::wait_for_streams() const try {
  if (!world_.queues_runs())
    for (auto const& event : record_.before) event->wait();
  return std::nullopt;
} catch (...) {
  return caught(operation());
}

std::string RunSupervisor::operation() const { return fmt::format("run {}", record_.name()); }

std::string RunSupervisor::describe_launch() const {
  auto const& threads = record_.launch.threads;
  auto text = fmt::format("launch {} with ", record_.image.name);
  text += threads.x == 0
              ? "the default number of threads a rank"
              : fmt::format("{} x {} x {} threads a rank", threads.x, threads.y, threads.z);
  if (u64 const bytes = record_.launch.scratch.value; bytes != 0)
    text += fmt::format(", {} bytes of scratch", bytes);
  if (record_.launch.with_host) text += ", with the host";
  return text;
}

std::chrono::milliseconds RunSupervisor::deadline() const {
  return record_.launch.deadline.value_or(world_.options().deadline);
}

void RunSupervisor::launch() {
  running_.reserve(
      specs_.size());  // so that a launch that runs is watched, even if something fails
  launches_.reserve(specs_.size());
  for (auto const& spec : specs_) {
    launches_.push_back(backend(spec.grids.front().device->kind()).launch(spec));
    running_.push_back({launches_.back().get(), spec.grids});
  }
  if (!world_.queues_runs() || record_.one_by_one || record_.launch.streams.empty()) return;
  std::vector<std::shared_ptr<Event>> ends;
  for (auto const& launch : launches_) std::ranges::move(launch->ends(), std::back_inserter(ends));
  record_.launch_is_done(std::move(ends));
}

// When it returns, the ranks of all processes have ended, even after a failure. \throws
// Error(peer_lost) if the proxy hangs
Ending RunSupervisor::run_ranks() {
  for (auto const& state : states_) readers_.emplace_back(state.log);
  Watch watch(running_, readers_, deadline(), detector_ ? &*detector_ : nullptr, proxy_,
              record_.launch.with_host ? &world_.endpoint() : nullptr);
  if (count_ > 1) watch.each_look([this] { take_news(); });
  if (not_launched_) watch.poison(Reason::failed);
  auto ending = until_end(watch);
  // Before their stacks are gone: the answer for a rank that was ended has no target any more.
  if (proxy_ && ending.reason != Reason::finished) proxy_->abandon();
  running_.clear();
  launches_.clear();
  end_ = steady_ns();
  if (auto* const timeline = world_.host_timeline())
    timeline->add_run(record_.image.name, begin_, end_);
  record_.result.seconds += static_cast<double>(end_ - begin_) * 1e-9;
  if (not_launched_) ending.failure = not_launched_;
  return ending;
}

// An error thrown here ends the run, but its ranks continue until they have seen the poison.
Ending RunSupervisor::until_end(Watch& watch) {
  for (;;) try {
      return watch.until_end();
    } catch (...) {
      if (proxy_ && proxy_->hangs()) throw;
      if (!not_launched_) not_launched_ = caught(operation());
      if (detector_) detector_->poison(Reason::failed);
      watch.poison(Reason::failed);
    }
}

}  // namespace meshpost::detail
