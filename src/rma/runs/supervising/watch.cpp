#include "rma/runs/supervising/watch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/caught.hpp"
#include "rma/runs/supervising/reports.hpp"

namespace meshpost::detail {
namespace {

// On a GPU a rank that leaves does not report it: its kernel's end does. The first rank knows.
bool all_have_ended(LaunchGrid const& grid) {
  return grid.ended && (grid.is_over() || read(grid.reports[0].all_ended) != 0);
}
template <class AllRunning, class Visit>
void each_report_of_all(AllRunning const& all_running, Visit&& visit) {
  for (auto const& running : all_running) each_report(running, visit);
}

// Called in a handler.
Error sink_failure() {
  constexpr auto operation = "print what a rank logged";
  return {Kind::misuse, operation, "EventSink::log threw: " + caught(operation).cause(),
          "let the EventSink catch it"};
}

constexpr auto look_every = std::chrono::microseconds(1000);
// Each look takes a core away from a rank of a CPU device for some 10 us.
constexpr auto look_when_calm = std::chrono::microseconds(5000);

// A rank that computes must get this part of the deadline as time of a processor. On busy machines
// it takes longer to get it, and where a virtual machine has to wait for a processor.
constexpr int part_to_get = 8;

}  // namespace

Watch::Watch(std::vector<RunningGrids> const& all_running, std::vector<LogReader>& logs,
             std::chrono::milliseconds deadline, TerminationDetector* detector, Proxy* proxy,
             HostEndpoint* host, std::chrono::milliseconds grace)
    : logs_(logs),
      deadline_(deadline),
      grace_(grace),
      starving_(deadline * 3 / 4),
      detector_(detector),
      proxy_(proxy),
      host_(host) {
  u64 ranks = 0;
  // Questions have different numbers in all runs, so an old answer is never taken for a new one.
  for (auto const& running : all_running) {
    running_.push_back({running});
    if (!running.grids.empty()) running_.back().epoch = read(running.grids.front().control->epoch);
  }
  for (auto const& running : all_running)
    for (auto const& grid : running.grids) ranks += grid.ranks;
  ending_.states.reserve(ranks);  // so that poison() can't fail
}

bool Watch::finished() const {
  return std::ranges::all_of(running_,
                             [](auto const& running) { return running.launch->finished(); });
}

// True if own devices have met those of all other processes, at the run's end.
bool Watch::met() const {
  return !running_.empty() && std::ranges::all_of(running_, [](auto const& running) {
    return std::ranges::all_of(running.grids,
                               [](LaunchGrid const& grid) { return grid.is_over(); });
  });
}

// On a GPU other launches may come first, of another World or of a user's stream. Until they are
// over, no rank can make progress, leave, or answer.
bool Watch::begun() const {
  return std::ranges::all_of(running_, [](auto const& running) {
    return std::ranges::all_of(running.grids, &LaunchGrid::has_begun);
  });
}

// CPU devices.
bool Watch::all_blocked() const {
  return std::ranges::all_of(
      running_, [](auto const& running) { return running.launch->quiet().has_value(); });
}

bool Watch::any_left() const {
  bool any = false;
  each_report_of_all(running_, [&](RankReport& report, u32) {
    any |= read(report.left) != 0 || state_of(report) == RankState::failed;
  });
  return any;
}

void Watch::look_at(LaunchGrid const& grid, Seen& seen) {
  Seen here;
  for (u32 r = 0; r < grid.ranks; ++r) {
    RankReport& report = grid.reports[r];
    switch (state_of(report)) {
      case RankState::waiting:
      case RankState::asking: ++here.ranks.waiting; break;
      case RankState::failed: ++here.failed; break;
      case RankState::ended: here.ranks.ending += grid.ended ? 1 : 0; break;
      default: ++here.ranks.computing;
    }
    seen.signs_of_life =
        (seen.signs_of_life * 31 + read(report.state)) * 31 + read(report.sequence);
    seen.signs_of_life = seen.signs_of_life * 31 + read(report.progress);
  }
  // Ranks' reports may already be the next run's, which begins on a GPU when this one has ended. So
  // this is read after them.
  if (all_have_ended(grid)) here = {{.ending = grid.is_over() ? 0 : grid.ranks}};
  seen.ranks += here.ranks;
  seen.failed += here.failed;
}

Watch::Seen Watch::look() const {
  Seen seen;
  for (auto const& running : running_)
    for (auto const& grid : running.grids) look_at(grid, seen);
  return seen;
}

TerminationDetector::Own Watch::own(Seen const& seen, u64 life, bool ended) {
  TerminationDetector::Own own{
      .ended = ended, .quiet = std::nullopt, .signs_of_life = life, .doing = seen.ranks};
  // The ranks answer again for each round: answers from before the round count for nothing.
  if (std::exchange(round_, detector_->round()) != round_)
    for (auto& running : running_) running.asked.clear();
  auto const ranks = host_ || !begun() ? Quiet{} : quiet();
  own.known = ranks.known;
  own.quiet = ranks.number;
  if (proxy_) {
    auto const traffic = proxy_->traffic();
    own.sent = traffic.sent, own.received = traffic.received;
  }
  own.left = (ended && !met()) || any_left();
  return own;
}

std::optional<Error> Watch::failure() {
  if (unheard_) return unheard_;
  for (auto const& running : running_)
    if (auto failure = running.launch->failure()) return failure;
  return proxy_ ? proxy_->failure() : std::nullopt;
}

// For a run that has ended well nowhere.
void Watch::let_the_end_be_left() {
  for (auto const& running : running_)
    for (auto const& grid : running.grids)
      std::atomic_ref(grid.control->poison)
          .fetch_or(Control::leave_the_end, std::memory_order_release);
}

void Watch::poison(Reason reason) {
  if (poisoned_) return;
  // The report is about the states before the poison, not about what ranks do until they see it.
  for (auto const& running : running_)
    for (auto const& grid : running.grids) {
      bool const ended = all_have_ended(grid);
      for (u32 r = 0; r < grid.ranks; ++r)
        ending_.states.push_back(ended ? RankState::ended : state_of(grid.reports[r]));
    }
  for (auto const& running : running_)
    for (auto const& grid : running.grids)
      std::atomic_ref(grid.control->poison).fetch_or(Control::leave, std::memory_order_release);
  if (!detector_ || !detector_->ranks_meet()) let_the_end_be_left();
  poisoned_ = true;
  grace_.renew();
  ending_.reason = reason;
}

// For one process: the termination detector decides for several.
std::optional<Reason> Watch::find_reason(Seen const& seen, bool life) {
  if (!begun()) {
    deadline_.renew();
    return std::nullopt;
  }
  if (life || !seen.ranks.must_get_on()) deadline_.renew();
  if (!host_ && deadlocked()) return Reason::deadlock;
  return deadline_.ends() && !watched_by_debugger(deadline_) ? std::optional(Reason::deadline)
                                                             : std::nullopt;
}

// The deadline is for ranks that could go on. Others get more time: it counts as a sign of life.
void Watch::see_that_ranks_get_time(bool life) {
  if (deadline_.length().count() == 0) return;
  if (life || !counting_) {
    counting_ = !life;
    for (auto const& running : running_)
      if (counting_) running.launch->count_time();
    starving_.renew();
  } else if (starving_.ends()) {  // shortly before the deadline
    starved_ += std::ranges::any_of(running_, [&](auto const& running) {
      return running.launch->starved(deadline_.length() / part_to_get);
    });
    starving_.renew();
  }
}

// An error thrown by the user's sink ends the run, as one thrown by a rank does.
void Watch::drain_logs() {
  for (auto& log : logs_) try {
      lines_ += log.drain();
    } catch (...) {
      if (!unheard_) unheard_ = sink_failure();
    }
}

Ending Watch::until_end() {
  u64 signs = 0, all_signs = 0;
  bool calm = false;
  for (;;) {
    auto const runs = std::ranges::find_if_not(
        running_, [](auto const& running) { return running.launch->finished(); });
    if (runs != running_.end()) runs->launch->doze(calm ? look_when_calm : look_every);
    else if (detector_) detector_->wait(look_every);
    drain_logs();
    if (host_) host_->poll();
    if (each_look_) each_look_();
    bool const ended = finished();
    if (ended && !detector_) break;
    if (ended && detector_->ranks_meet() && met()) {
      ending_.reason = Reason::finished;  // even if something else was reported
      ending_.met = true;
      break;
    }
    auto seen = look();
    // Threads of a rank that wait for each other do not compute. Without a host's part that is a
    // deadlock. With other processes, ranks may also be blocked until these have launched.
    if (host_ && !detector_ && seen.ranks.computing != 0 && all_blocked())
      seen.ranks.waiting += std::exchange(seen.ranks.computing, 0);
    waits_ += begun() ? 0 : 1;
    u64 const moved = proxy_ ? proxy_->moved() : 0;
    u64 const of_ranks = ((seen.signs_of_life * 31 + lines_) * 31 + waits_) * 31 + moved;
    see_that_ranks_get_time(std::exchange(signs, of_ranks) != of_ranks);
    u64 const life = of_ranks * 31 + starved_;
    std::optional<Reason> reason;
    if (seen.failed != 0 || failure()) {
      reason = Reason::failed;
      if (detector_ && ending_.reason != Reason::failed) detector_->poison(Reason::failed);
    }
    if (detector_) {
      auto const verdict = detector_->poll(own(seen, life, ended));
      if (!reason && verdict.poison != Reason::finished) reason = verdict.poison;
      if (verdict.nowhere) let_the_end_be_left();
      if (verdict.over) {
        // A failure here that came too late for the others stays in `failure`. They learn of it
        // when the run's parts are exchanged.
        ending_.reason = verdict.poison;
        break;
      }
    } else if (!reason && !poisoned_) {
      reason = find_reason(seen, life != all_signs);
    }
    all_signs = life;
    if (!poisoned_ && reason) poison(*reason);
    if (reason == Reason::failed) ending_.reason = Reason::failed;
    if (poisoned_ && !ended && proxy_) proxy_->see_that_nobody_hangs();
    if (poisoned_ && !ended && !begun()) grace_.renew();
    if (poisoned_ && !ended && grace_.ends()) abandon();
    calm = is_calm(seen);
  }
  if (host_) host_->watch_ends();
  drain_logs();
  ending_.failure = failure();
  // The run may have ended before a failure was seen. Other processes have been told of it before
  // they were told of the end.
  if (!detector_ && !met() && look().failed != 0) ending_.reason = Reason::failed;
  return ending_;
}

// Ranks compute, on CPU devices alone: these tell the host if one fails, or all have ended. Those
// that log may wait for the host to empty their ring.
bool Watch::is_calm(Seen const& seen) const {
  return !poisoned_ && !host_ && !each_look_ && lines_ == 0 && seen.ranks.computing != 0 &&
         std::ranges::none_of(running_,
                              [](auto const& running) { return running.launch->answers(); });
}

std::string Watch::why() const {
  switch (ending_.reason) {
    case Reason::deadline:
      return "no rank got on for " + deadline_.text() + " (MESHPOST_DEADLINE, Launch::deadline)";
    case Reason::deadlock: return "all ranks wait";
    case Reason::lost: return "a process is gone";
    default: return "a rank or its device failed";
  }
}

void Watch::abandon() const {
  std::string ranks;
  auto const add = [&](u32 rank) {
    if (ranks.size() < 200) ranks += (ranks.empty() ? "rank " : ", rank ") + std::to_string(rank);
  };
  auto const add_all = [&](RunningGrids const& running, auto&& in_question) {
    each_report(running, [&](RankReport& report, u32 rank) {
      if (in_question(state_of(report))) add(rank);
    });
  };
  for (auto const& running : running_) {
    auto const known = running.launch->running_ranks();
    std::ranges::for_each(known, add);
    if (known.empty())
      add_all(running, [](RankState state) { return state == RankState::running; });
  }
  if (ranks.empty())  // one thread of a rank waits, and another continues
    for (auto const& running : running_)
      add_all(running, [](RankState state) { return state != RankState::ended; });
  std::fprintf(stderr,
               "meshpost: the run was ended because %s, but its kernel is still running %s later. "
               "Threads of %s call no meshpost operation. A kernel can't be taken off its device, "
               "so this process ends; look for an endless loop there.\n",
               why().c_str(), grace_.text().c_str(), ranks.c_str());
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace meshpost::detail
