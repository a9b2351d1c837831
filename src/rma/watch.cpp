#include "rma/watch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/caught.hpp"

namespace meshpost::detail {
namespace {

u32 read(u32& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }
RankState state_of(RankReport& report) { return static_cast<RankState>(read(report.state)); }

template <class Visit>
void each_report(RunningGang const& crew, Visit&& visit) {
  for (auto const& grid : crew.grids)
    for (u32 r = 0; r < grid.ranks; ++r) visit(grid.reports[r], grid.first_rank + r);
}
// On a GPU a rank that leaves does not say so: its kernel's end does. The first one knows.
bool all_have_ended(Grid const& grid) {
  return grid.ended && (grid.is_over() || read(grid.reports[0].all_ended) != 0);
}
// Some wait, and the others have ended.
bool all_wait(RunningGang const& crew) {
  bool some = false, others = false;
  each_report(crew, [&](RankReport& report, u32) {
    auto const state = state_of(report);
    some |= state == RankState::waiting;
    others |= state != RankState::waiting && state != RankState::ended;
  });
  return some && !others;
}
// The run that all devices of a graph are in. Nothing: some device is between two runs.
//
// A device with news begins its next run when the host has taken them. Until then its first rank
// says that it has ended, and for a moment after that, too. It will go on, and ranks of other
// devices may wait for it in the next run already. So the ranks are asked only when each device has
// begun the run behind the last one that ended there. A deadlock is found all the same: devices
// come so far without the ranks that wait. A rank takes back what it said before its device begins
// the next run, so what it says once this run has been seen is said in this run.
std::optional<u32> run_under_way(RunningGang const& crew) {
  std::optional<u32> run;
  for (auto const& grid : crew.grids) {
    if (grid.runs == 1 || !grid.begun || !grid.ended) return grid.run;
    u32 const ended = memory::load_acquire(grid.ended), begun = memory::load_acquire(grid.begun);
    if (begun != ended + 1 || run.value_or(begun) != begun) return std::nullopt;
    run = begun;
  }
  return run;
}
template <class Crews, class Visit>
void each_report_of_all(Crews const& crews, Visit&& visit) {
  for (auto const& crew : crews) each_report(crew, visit);
}

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
  // Questions have numbers of their own in all runs: an old answer is none.
  for (auto const& crew : crews) {
    crews_.push_back({crew});
    if (!crew.grids.empty()) crews_.back().epoch = read(crew.grids.front().control->epoch);
  }
  for (auto const& crew : crews)
    for (auto const& grid : crew.grids) ranks += grid.ranks;
  ending_.states.reserve(ranks);  // so that nothing can fail on poison's way
}

bool Watch::finished() const {
  return std::ranges::all_of(crews_, [](auto const& crew) { return crew.gang->finished(); });
}

bool Watch::met() const {
  return !crews_.empty() && std::ranges::all_of(crews_, [](auto const& crew) {
    return std::ranges::all_of(crew.grids, [](Grid const& grid) { return grid.is_over(); });
  });
}

// On a GPU other launches may come first, of another World or of a user's stream. Until they are
// over, no rank can get on, leave, or answer.
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
  // What ranks say of themselves may be the next run's, which begins on a GPU when this one has
  // ended. So this is asked behind it.
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

// Asks all ranks, once every one that has not ended says it waits: do you still? If each answers
// the same question with a word for which its condition does not hold, none can go on: nothing was
// under way when it was asked (a rank's notifications are complete before it says that it waits),
// and none has moved since (a rank takes that back before it does anything). One that has ended
// since has moved: what it sent may have come after the answer of another. See wait_long in
// device/cuda/block.hpp. Nothing: not all have answered. Ranks that never do (CPU devices, where a
// thread may go on while the rank's first one waits) are not asked: nothing is known of them.
std::optional<bool> Watch::question(Watched& crew, bool all_wait) {
  if (!all_wait || !crew.gang->answers()) {
    crew.asked.clear();
    return false;
  }
  if (crew.asked.empty()) {
    auto const run = run_under_way(crew);  // before what the ranks say in it
    if (!run) return false;
    crew.asked_in = *run;
    each_report(crew, [&](RankReport& report, u32) {
      crew.asked.push_back({read(report.sequence), state_of(report) == RankState::ended});
    });
    ++crew.epoch;
    for (auto const& grid : crew.grids)
      std::atomic_ref(grid.control->epoch).store(crew.epoch, std::memory_order_release);
    return std::nullopt;
  }
  bool all = true, vain = true, moved = false;
  std::size_t i = 0;
  each_report(crew, [&](RankReport& report, u32) {
    Asked const& before = crew.asked[i++];
    if (before.ended) {  // or it waited at its run's begin or end, and goes on
      moved |= state_of(report) != RankState::ended;
      return;
    }
    moved |= state_of(report) == RankState::ended || read(report.sequence) != before.sequence;
    bool const answered = read(report.epoch) == crew.epoch;
    all &= answered;
    vain &= !answered || !holds(report.condition, report.observed);
  });
  moved |= run_under_way(crew) != crew.asked_in;  // read behind what they say
  if (moved) crew.asked.clear();
  if (!all && vain && !moved) return std::nullopt;
  return vain && !moved;
}

Watch::Quiet Watch::quiet(Watched& crew) {
  if (crew.gang->finished()) return {true, 0};
  bool const wait = all_wait(crew);
  if (auto const number = crew.gang->quiet()) return {true, number};
  auto const answer = question(crew, wait);
  if (!answer) return {false, std::nullopt};
  if (!*answer) return {};
  u64 number = 1;
  for (auto const& asked : crew.asked) number = number * 31 + asked.sequence;
  return {true, number};
}

// The same for all ranks of this process, and what is under way to them.
//
// Two rounds in which all are quiet with equal numbers prove that none of them can go on: each
// crew, and the proxy, was quiet from its first answer to its second, so between the rounds there
// is a moment when all were. What reaches a rank from another crew or process the proxy brings; it
// brought nothing since, and had nothing more to bring.
Watch::Quiet Watch::quiet() {
  auto const before = proxy_ ? proxy_->quiet() : std::optional<u64>(0);
  if (!before || look().failed != 0) return {};
  bool known = true;
  auto all = before;
  for (auto& crew : crews_) {
    auto const one = quiet(crew);
    known &= one.known;
    if (!one.number || !all) all.reset();
    else all = *all * 31 + *one.number;
  }
  if (!known) return {false, std::nullopt};
  for (auto& crew : crews_) crew.asked.clear();  // asked anew for the next round
  // If the proxy did nothing from before the ranks were looked at until after, it woke none.
  if (proxy_ && proxy_->quiet() != before) return {};
  return {true, all};
}

Council::Own Watch::own(Seen const& seen, u64 life, bool ended) {
  Council::Own own{
      .ended = ended, .quiet = std::nullopt, .signs_of_life = life, .doing = seen.ranks};
  // The ranks answer anew for each round: what they saw before it says nothing.
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

void Watch::let_the_end_be_left() {
  for (auto const& crew : crews_)
    for (auto const& grid : crew.grids)
      std::atomic_ref(grid.control->poison)
          .fetch_or(Control::leave_the_end, std::memory_order_release);
}

void Watch::poison(Reason reason) {
  if (poisoned_) return;
  // What goes on until the ranks have seen it is not what the report is about.
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

// With a proxy somebody else than the ranks may wake them, so twice; and then one must be left
// that waits: all that have ended are quiet, too.
bool Watch::deadlocked() {
  if (!proxy_) {
    for (auto& crew : crews_) {
      bool const wait = all_wait(crew);
      if (crew.gang->deadlocked() || question(crew, wait) == true) return true;
    }
    return false;
  }
  auto const now = quiet();
  if (!now.known) return false;
  bool const twice = now.number && in_vain_ == now.number;
  in_vain_ = now.number;
  return twice && look().ranks.waiting != 0;
}

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

// What the user's sink throws ends the run, as what a rank throws does.
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
      ending_.reason = Reason::finished;  // whatever else has come
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
        // What failed here too late for the others to heed stays in `failure`: they hear of it when
        // the run's parts are exchanged.
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
  // It may have ended before it was seen; others have been told before they were told of the end.
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
  if (ranks.empty())  // one thread of them waits, and another goes on
    for (auto const& crew : crews_)
      add_all(crew, [](RankState state) { return state != RankState::ended; });
  std::fprintf(stderr,
               "meshpost: the run was ended since %s, but its kernel goes on %s later. Ranks with "
               "threads that call no meshpost operation: "
               "%s. A kernel can't be taken off its device, so this process ends; look for an "
               "endless loop there.\n",
               why().c_str(), grace_.text().c_str(), ranks.c_str());
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace meshpost::detail
