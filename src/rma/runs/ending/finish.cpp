// The result of a run whose ranks have ended.
#include <fmt/format.h>

#include "base/caught.hpp"
#include "rma/runs/diagnosing/diagnosis.hpp"
#include "rma/runs/ending/end.hpp"
#include "rma/runs/ending/timeline.hpp"
#include "rma/runs/ending/unconsumed.hpp"
#include "rma/runs/launching/run.hpp"
#include "trace/timeline_writer.hpp"

namespace meshpost::detail {
namespace {

// If a GPU has news, no GPU of the World begins another run before the host has read it, or failed.
struct NewsTaken {
  NewsTaken(WorldState& of, u32 run) : world(of), number(run) {}
  NewsTaken(NewsTaken const&) = delete;
  NewsTaken& operator=(NewsTaken const&) = delete;
  ~NewsTaken() {
    for (u32 d = 0; d < world.layout().own_count(); ++d)
      memory::store(&world.resources().memory(d).news.as<RunNews>()->taken, number, Order::system);
  }
  WorldState& world;
  u32 number;
};

}  // namespace

// The result of the run, now that all ranks have ended: the same in all processes.
void RunSupervisor::finish(Ending const& ending) {
  NewsTaken const taken(world_, number_);
  RunPart own{ending.reason, ending.failure};
  std::optional<FailedRunState> failed_state;
  // A failure here may be one of this process only: the others are told.
  auto const attempt = [&](auto const& work) {
    try {
      work();
    } catch (...) {
      if (!own.error) own.error = caught(operation());
    }
  };
  attempt([&] {
    if (proxy_ && ending.reason == Reason::finished) proxy_->drain(record_.image.name);
    if (proxy_ && ending.reason != Reason::finished && ending.reason != Reason::lost)
      proxy_->quiesce(record_.image.name, quiesce_timeout(ending.reason));
  });
  attempt([&] {
    if (proxy_) proxy_->stop();
  });
  if (ending.reason != Reason::finished) name_what_failed();
  attempt([&] {
    // Nothing to read if the run was not launched, or if the device itself is broken.
    if (own.error && (not_launched_ || own.error->kind() != Kind::peer_lost)) return;
    if (ending.reason != Reason::finished) {
      for (auto const& state : states_)
        if (world_.layout().own(state.device).in_host_memory()) unpack_lanes(state);
      failed_state.emplace(world_, all_grids(), ending);
    }
    // Not in a job that has lost a process: its launcher ends it soon, and the error must come
    // first.
    if (trace_ && ending.reason != Reason::lost && !own.error)
      write_timeline(ending.reason != Reason::finished || !record_.launch.trace.empty());
    own.timings = collect_timings(world_, states_, number_);
    if (own.reason == Reason::finished) look_at_news(own);
    if (detector_ && own.reason != Reason::finished && own.reason != Reason::lost)
      own.failed_state = failed_state->pack();
  });
  if (own.reason == Reason::lost && !own.error) throw diagnosis(*failed_state, own.reason);
  ended_well_ = ending.met;
  if (ending.met && !has_news()) {  // nowhere: the rest is this process's own
    if (own.error) throw Error(*own.error);
    record_.result.timings.resize(layout_.device_count());
    return;
  }
  auto const parts = [&] {
    try {
      return share(own);
    } catch (Error const& error) {
      // The network engine may have seen the loss of a process before the job did.
      if (error.kind() != Kind::peer_lost || !failed_state || !group_.processes().gone()) throw;
      throw diagnosis(*failed_state, Reason::lost);
    }
  }();
  auto reason = Reason::finished;
  u32 number = 0;  // number of a device
  for (u32 process = 0; process < parts.size(); ++process) {
    if (parts[process].error) throw group_.of_process(process, *parts[process].error);
    reason = std::max(reason, parts[process].reason);
    auto& result = record_.result;
    for (auto const& left : parts[process].unconsumed) result.unconsumed.push_back(left);
    result.unconsumed_left_out += parts[process].unconsumed_left_out;
    result.timings.resize(layout_.device_count());
    for (auto const& device : parts[process].timings)
      std::ranges::copy(device, std::back_inserter(result.timings[number++]));
    if (process != group_.number() && failed_state && !parts[process].failed_state.empty())
      failed_state->add(parts[process].failed_state);
  }
  if (reason != Reason::finished) throw diagnosis(*failed_state, reason);
  if (ledger_) ledger_->finish();
  if (group_.number() == 0) report_unconsumed(world_, record_);
}

void RunSupervisor::look_at_news(RunPart& own) const {
  bool met = true, any = false;
  for (u32 d = 0; d < layout_.own_count(); ++d) {
    auto const& news = *world_.resources().memory(d).news.as<RunNews>();
    // Once this has come, the rest is this run's as long as `of_run` says so: the next run does not
    // begin before that was read.
    u32 const ended = memory::load_acquire(&news.ended);
    met &= static_cast<i32>(ended - number_) >= 0;
    any |= news.of_run == number_ && news.left != 0;
  }
  // A kernel of dCUDA need not report its begin or end, or may continue after it has.
  bool const says_so = record_.image.arguments == Arguments::kernel_and_state;
  if (!says_so)
    for (u32 d = 0; d < layout_.own_count(); ++d) world_.resources().memory(d).expect_ranks();
  if (!met && says_so)
    throw Error(Kind::kernel_failed, operation(),
                "its ranks ended before they reached the end of the run",
                "let kernels return: they must not end their threads by themselves");
  if (!met) world_.resources().clear_counters(number_, world_.agreement().begun());
  else if (any)
    own.unconsumed =
        read_unconsumed(world_, number_, RunPart::most_unconsumed, own.unconsumed_left_out);
}

// News of devices of any process: all know it.
bool RunSupervisor::has_news() const {
  return world_.resources().memory(0).news.as<RunNews>()->anywhere == number_;
}

// If nothing has moved for the deadline, a message that has not come by then will not come.
std::chrono::milliseconds RunSupervisor::quiesce_timeout(Reason reason) const {
  if (reason == Reason::deadline) return std::chrono::milliseconds(100);
  if (group_.alone()) return std::chrono::milliseconds(0);  // no limit: only devices are waited for
  return group_.processes().job().silence;
}

std::vector<RunPart> RunSupervisor::share(RunPart const& own) const {
  if (!detector_) return {own};
  std::vector<RunPart> parts;
  // If processes may have launched different kernels, they find out here.
  auto const name = ranks_meet_ ? launch_ : fmt::format("end {}", record_.image.name);
  for (auto const& bytes : group_.exchange(name, own.pack()))
    parts.push_back(RunPart::unpack(bytes));
  return parts;
}

Error RunSupervisor::diagnosis(FailedRunState const& failed_state, Reason reason) const {
  return diagnose({world_, record_, failed_state, deadline()}, reason);
}

// A timeline is worth writing if the run fails, even if the process ends badly. A launch that names
// a file has it when the run is over. Otherwise runs may follow each other quickly, and only the
// last one's file is kept.
void RunSupervisor::write_timeline(bool at_once) {
  auto offsets = world_.resources().trace().clock_offsets();
  TracedRun run{
      record_.image.name, &layout_, std::move(trace_), std::move(offsets), number_, begin_, end_};
  auto& writer = trace::TimelineWriter::of_process();
  auto collect = [run = std::move(run)] { return run.collect(); };
  if (at_once) writer.write(trace_file(), std::move(collect));
  else writer.put_off(trace_file(), std::move(collect));
}

std::string RunSupervisor::trace_file() const {
  return world_.own_file(world_.trace_file(record_.launch));
}

}  // namespace meshpost::detail
