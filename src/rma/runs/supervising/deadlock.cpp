// Finds out if ranks wait for something that will not come: the questions that Watch asks ranks,
// and the conclusions from their answers.
#include <algorithm>
#include <atomic>

#include "rma/runs/supervising/reports.hpp"

namespace meshpost::detail {
namespace {

// True if some wait, and the others have ended. A rank that has yet to begin the run says that it
// has ended the one before. But it will continue, as soon as its GPU gives it time.
bool all_wait(RunningGrids const& running) {
  bool some = false, others = false;
  each_report(running, [&](RankReport& report, u32) {
    auto const state = state_of(report);
    some |= state == RankState::waiting;
    others |=
        state != RankState::waiting && (state != RankState::ended || read(report.begins) != 0);
  });
  return some && !others;
}
// The run that all devices of a graph are in. Empty: some device is between two runs.
//
// A device with news ends its run when the host has taken the news. Until then, and for a moment
// after, its first rank says that it has ended. But it will continue, and ranks of other devices
// may already wait for it at the begin of the next run, or in it. So the ranks are asked only when
// each device has begun the run behind the last one that ended there. A deadlock is still found,
// because devices reach that point without the ranks that wait. A rank takes back its report before
// its device begins the next run. So a report read after this run was seen is of this run.
std::optional<u32> run_under_way(RunningGrids const& running) {
  std::optional<u32> run;
  for (auto const& grid : running.grids) {
    if (grid.runs == 1 || !grid.begun || !grid.ended) return grid.run;
    u32 const ended = memory::load_acquire(grid.ended), begun = memory::load_acquire(grid.begun);
    if (begun != ended + 1 || run.value_or(begun) != begun) return std::nullopt;
    run = begun;
  }
  return run;
}

}  // namespace

// Asks all ranks if they still wait, once every rank that has not ended says that it waits. If each
// answers the same question with a word for which its condition does not hold, none can continue.
// Nothing was in flight when it was asked, because a rank's notifications are complete before it
// says that it waits. None has moved since, because a rank takes its report back before it does
// anything. A rank that has ended since then has moved: its messages may have come after the answer
// of another. See wait_long in device/cuda/block.hpp. Empty: not all have answered. Ranks that
// never answer are not asked, and nothing is known of them (CPU devices, where a thread may
// continue while the rank's first one waits).
std::optional<bool> Watch::question(Watched& running, bool all_wait) {
  if (!all_wait || !running.launch->answers()) {
    running.asked.clear();
    return false;
  }
  if (running.asked.empty()) {
    auto const run = run_under_way(running);  // read before the ranks' reports in it
    if (!run) return false;
    running.asked_in = *run;
    each_report(running, [&](RankReport& report, u32) {
      running.asked.push_back({read(report.sequence), state_of(report) == RankState::ended});
    });
    ++running.epoch;
    for (auto const& grid : running.grids)
      std::atomic_ref(grid.control->epoch).store(running.epoch, std::memory_order_release);
    return std::nullopt;
  }
  bool all = true, vain = true, moved = false;
  std::size_t i = 0;
  each_report(running, [&](RankReport& report, u32) {
    Asked const& before = running.asked[i++];
    if (before.ended) {  // or it waited at its run's begin or end, and continues
      moved |= state_of(report) != RankState::ended;
      return;
    }
    moved |= state_of(report) == RankState::ended || read(report.sequence) != before.sequence;
    bool const answered = read(report.epoch) == running.epoch;
    all &= answered;
    vain &= !answered || !holds(report.condition, report.observed);
  });
  moved |= run_under_way(running) != running.asked_in;  // read after their reports
  if (moved) running.asked.clear();
  if (!all && vain && !moved) return std::nullopt;
  return vain && !moved;
}

// A number that stays the same while none of the launch's ranks can continue.
Watch::Quiet Watch::quiet(Watched& running) {
  if (running.launch->finished()) return {true, 0};
  bool const wait = all_wait(running);
  if (auto const number = running.launch->quiet()) return {true, number};
  auto const answer = question(running, wait);
  if (!answer) return {false, std::nullopt};
  if (!*answer) return {};
  u64 number = 1;
  for (auto const& asked : running.asked) number = number * 31 + asked.sequence;
  return {true, number};
}

// The same for all ranks of this process, and for messages in flight to them.
//
// Two rounds in which all are quiet with equal numbers prove that none of them can continue. Each
// launch, and the proxy, was quiet from its first answer to its second. So between the rounds there
// is a moment when all were. The proxy brings everything that reaches a rank from another launch or
// process. It brought nothing since, and had nothing more to bring.
Watch::Quiet Watch::quiet() {
  auto const before = proxy_ ? proxy_->quiet() : std::optional<u64>(0);
  if (!before || look().failed != 0) return {};
  bool known = true;
  auto all = before;
  for (auto& running : running_) {
    auto const one = quiet(running);
    known &= one.known;
    if (!one.number || !all) all.reset();
    else all = *all * 31 + *one.number;
  }
  if (!known) return {false, std::nullopt};
  for (auto& running : running_) running.asked.clear();  // asked again in the next round
  // If the proxy did nothing from before the ranks were polled until after, it woke none.
  if (proxy_ && proxy_->quiet() != before) return {};
  return {true, all};
}

// With a proxy, not only ranks may wake ranks, so two rounds are needed. Then at least one rank
// must wait, because ranks that have all ended are quiet, too.
bool Watch::deadlocked() {
  if (!proxy_) {
    for (auto& running : running_) {
      bool const wait = all_wait(running);
      if (running.launch->deadlocked() || question(running, wait) == true) return true;
    }
    return false;
  }
  auto const now = quiet();
  if (!now.known) return false;
  bool const twice = now.number && in_vain_ == now.number;
  in_vain_ = now.number;
  return twice && look().ranks.waiting != 0;
}

}  // namespace meshpost::detail
