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
bool all_have_ended(Grid const& grid) {
  return grid.ended && (grid.is_over() || read(grid.reports[0].all_ended) != 0);
}
template <class Crews, class Visit>
void each_report_of_all(Crews const& crews, Visit&& visit) {
  for (auto const& crew : crews) each_report(crew, visit);
}

// Called in a handler.
Error sink_failure() {
  constexpr auto operation = "print what a rank logged";
  return {Kind::misuse, operation, "EventSink::log threw: " + caught(operation).cause(),
          "let the EventSink catch it"};
}

constexpr auto look_every = std::chrono::microseconds(1000);

}  // namespace

Watch::Watch(std::vector<RunningGang> const& crews, std::vector<LogReader>& logs,
             std::chrono::milliseconds deadline, Council* council, Proxy* proxy, HostEndpoint* host,
             std::chrono::milliseconds grace)
    : logs_(logs),
      deadline_(deadline),
      grace_(grace),
      council_(council),
      proxy_(proxy),
      host_(host) {
  u64 ranks = 0;
  // Questions have different numbers in all runs, so an old answer is never taken for a new one.
  for (auto const& crew : crews) {
    crews_.push_back({crew});
    if (!crew.grids.empty()) crews_.back().epoch = read(crew.grids.front().control->epoch);
  }
  for (auto const& crew : crews)
    for (auto const& grid : crew.grids) ranks += grid.ranks;
  ending_.states.reserve(ranks);  // so that poison() can't fail
}

bool Watch::finished() const {
  return std::ranges::all_of(crews_, [](auto const& crew) { return crew.gang->finished(); });
}

// True if own devices have met those of all other processes, at the run's end.
bool Watch::met() const {
  return !crews_.empty() && std::ranges::all_of(crews_, [](auto const& crew) {
    return std::ranges::all_of(crew.grids, [](Grid const& grid) { return grid.is_over(); });
  });
}

// On a GPU other launches may come first, of another World or of a user's stream. Until they are
// over, no rank can make progress, leave, or answer.
bool Watch::begun() const {
  return std::ranges::all_of(
      crews_, [](auto const& crew) { return std::ranges::all_of(crew.grids, &Grid::has_begun); });
}

bool Watch::any_left() const {
  bool any = false;
  each_report_of_all(crews_, [&](RankReport& report, u32) {
    any |= read(report.left) != 0 || state_of(report) == RankState::failed;
  });
  return any;
}

void Watch::look_at(Grid const& grid, Seen& seen) {
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
  for (auto const& crew : crews_)
    for (auto const& grid : crew.grids) look_at(grid, seen);
  return seen;
}

Council::Own Watch::own(Seen const& seen, u64 life, bool ended) {
  Council::Own own{
      .ended = ended, .quiet = std::nullopt, .signs_of_life = life, .doing = seen.ranks};
  // The ranks answer again for each round: answers from before the round count for nothing.
  if (std::exchange(round_, council_->round()) != round_)
    for (auto& crew : crews_) crew.asked.clear();
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
  for (auto const& crew : crews_)
    if (auto failure = crew.gang->failure()) return failure;
  return proxy_ ? proxy_->failure() : std::nullopt;
}

// For a run that has ended well nowhere.
void Watch::let_the_end_be_left() {
  for (auto const& crew : crews_)
    for (auto const& grid : crew.grids)
      std::atomic_ref(grid.control->poison)
          .fetch_or(Control::leave_the_end, std::memory_order_release);
}

void Watch::poison(Reason reason) {
  if (poisoned_) return;
  // The report is about the states before the poison, not about what ranks do until they see it.
  for (auto const& crew : crews_)
    for (auto const& grid : crew.grids) {
      bool const ended = all_have_ended(grid);
      for (u32 r = 0; r < grid.ranks; ++r)
        ending_.states.push_back(ended ? RankState::ended : state_of(grid.reports[r]));
    }
  for (auto const& crew : crews_)
    for (auto const& grid : crew.grids)
      std::atomic_ref(grid.control->poison).fetch_or(Control::leave, std::memory_order_release);
  if (!council_ || !council_->ranks_meet()) let_the_end_be_left();
  poisoned_ = true;
  grace_.renew();
  ending_.reason = reason;
}

// For one process: the council decides for several.
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

// An error thrown by the user's sink ends the run, as one thrown by a rank does.
void Watch::drain_logs() {
  for (auto& log : logs_) try {
      lines_ += log.drain();
    } catch (...) {
      if (!unheard_) unheard_ = sink_failure();
    }
}

Ending Watch::until_end() {
  u64 signs = 0;
  for (;;) {
    auto const runs =
        std::ranges::find_if_not(crews_, [](auto const& crew) { return crew.gang->finished(); });
    if (runs != crews_.end()) runs->gang->doze(look_every);
    else if (council_) council_->wait(look_every);
    drain_logs();
    if (host_) host_->poll();
    if (each_look_) each_look_();
    bool const ended = finished();
    if (ended && !council_) break;
    if (ended && council_->ranks_meet() && met()) {
      ending_.reason = Reason::finished;  // even if something else was reported
      ending_.met = true;
      break;
    }
    auto const seen = look();
    waits_ += begun() ? 0 : 1;
    u64 const life =
        ((seen.signs_of_life * 31 + lines_) * 31 + waits_) * 31 + (proxy_ ? proxy_->moved() : 0);
    std::optional<Reason> reason;
    if (seen.failed != 0 || failure()) {
      reason = Reason::failed;
      if (council_ && ending_.reason != Reason::failed) council_->poison(Reason::failed);
    }
    if (council_) {
      auto const verdict = council_->sit(own(seen, life, ended));
      if (!reason && verdict.poison != Reason::finished) reason = verdict.poison;
      if (verdict.nowhere) let_the_end_be_left();
      if (verdict.over) {
        // A failure here that came too late for the others stays in `failure`. They learn of it
        // when the run's parts are exchanged.
        ending_.reason = verdict.poison;
        break;
      }
    } else if (!reason && !poisoned_) {
      reason = find_reason(seen, life != signs);
    }
    signs = life;
    if (!poisoned_ && reason) poison(*reason);
    if (reason == Reason::failed) ending_.reason = Reason::failed;
    if (poisoned_ && !ended && proxy_) proxy_->see_that_nobody_hangs();
    if (poisoned_ && !ended && !begun()) grace_.renew();
    if (poisoned_ && !ended && grace_.ends()) abandon();
  }
  drain_logs();
  ending_.failure = failure();
  // The run may have ended before a failure was seen. Other processes have been told of it before
  // they were told of the end.
  if (!council_ && !met() && look().failed != 0) ending_.reason = Reason::failed;
  return ending_;
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
    if (ranks.size() < 200) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  };
  auto const add_all = [&](RunningGang const& crew, auto&& in_question) {
    each_report(crew, [&](RankReport& report, u32 rank) {
      if (in_question(state_of(report))) add(rank);
    });
  };
  for (auto const& crew : crews_) {
    auto const known = crew.gang->running_ranks();
    std::ranges::for_each(known, add);
    if (known.empty()) add_all(crew, [](RankState state) { return state == RankState::running; });
  }
  if (ranks.empty())  // one thread of a rank waits, and another continues
    for (auto const& crew : crews_)
      add_all(crew, [](RankState state) { return state != RankState::ended; });
  std::fprintf(stderr,
               "meshpost: the run was ended because %s, but its kernel is still running %s later. "
               "Ranks with threads that call no meshpost operation: "
               "%s. A kernel can't be taken off its device, so this process ends; look for an "
               "endless loop there.\n",
               why().c_str(), grace_.text().c_str(), ranks.c_str());
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace meshpost::detail
