#include "rma/watch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace meshpost::detail {
namespace {

u32 read(u32& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }
RankState state_of(RankReport& report) { return static_cast<RankState>(read(report.state)); }

template <class Visit>
void each_report(std::vector<Grid> const& grids, Visit&& visit) {
  for (auto const& grid : grids)
    for (u32 r = 0; r < grid.ranks; ++r) visit(grid.reports[r], grid.first_rank + r);
}

constexpr auto look_every = std::chrono::microseconds(1000);
constexpr auto grace = std::chrono::seconds(10);

}  // namespace

Watch::Watch(Gang& gang, std::vector<Grid> const& grids, std::vector<LogReader>& logs,
             std::chrono::milliseconds deadline, Council* council, Proxy* proxy)
    : gang_(gang),
      grids_(grids),
      logs_(logs),
      deadline_(deadline),
      council_(council),
      proxy_(proxy) {}

Watch::Seen Watch::look() const {
  Seen seen;
  each_report(grids_, [&](RankReport& report, u32) {
    switch (state_of(report)) {
      case RankState::waiting: ++seen.waiting; break;
      case RankState::failed: ++seen.failed; break;
      case RankState::ended: break;
      case RankState::asking: ++seen.asking, ++seen.running; break;
      default: ++seen.running;
    }
    seen.signs_of_life =
        (seen.signs_of_life * 31 + read(report.state)) * 31 + read(report.sequence);
    seen.signs_of_life = seen.signs_of_life * 31 + read(report.progress);
  });
  return seen;
}

// Asks all ranks, once every one that has not ended says it waits: do you still? If each answers
// the same question with a word for which its condition does not hold, none can go on: nothing was
// under way when it was asked (a rank's notifications are complete before it says that it waits),
// and none has moved since (a rank takes that back before it does anything). One that has ended
// since has moved: what it sent may have come after the answer of another. See wait_long in
// device/cuda/block.hpp. Nothing: not all have answered.
std::optional<bool> Watch::question(Seen const& seen) {
  if (seen.running != 0 || seen.failed != 0 || seen.waiting == 0) {
    asked_.clear();
    return false;
  }
  if (asked_.empty()) {
    each_report(grids_, [&](RankReport& report, u32) {
      asked_.push_back({read(report.sequence), state_of(report) == RankState::ended});
    });
    ++epoch_;
    for (auto const& grid : grids_)
      std::atomic_ref(grid.control->epoch).store(epoch_, std::memory_order_release);
    return std::nullopt;
  }
  bool all = true, vain = true, moved = false;
  std::size_t i = 0;
  each_report(grids_, [&](RankReport& report, u32) {
    Asked const& before = asked_[i++];
    if (before.ended) return;
    moved |= state_of(report) == RankState::ended || read(report.sequence) != before.sequence;
    bool const answered = read(report.epoch) == epoch_;
    all &= answered;
    vain &= !answered || !holds(report.condition, report.observed);
  });
  if (moved) asked_.clear();
  if (!all && vain && !moved) return std::nullopt;
  return vain && !moved;
}

// For the council: a number that stays the same while none of the ranks can go on.
Watch::Quiet Watch::quiet(Seen const& seen) {
  if (seen.failed != 0) return {};
  if (gang_.finished()) return {true, 0};
  if (auto const number = gang_.quiet()) return {true, number};
  auto const answer = question(seen);
  if (!answer) return {false, std::nullopt};
  if (!*answer) return {};
  u64 number = 1;
  for (auto const& asked : std::exchange(asked_, {})) number = number * 31 + asked.sequence;
  return {true, number};
}

Council::Own Watch::own(Seen const& seen, u64 life, bool ended) {
  Council::Own own{ended, true, std::nullopt, life, seen.waiting + seen.asking};
  // The ranks answer anew for each round: what they saw before it says nothing.
  if (std::exchange(round_, council_->round()) != round_) asked_.clear();
  // If the proxy did nothing from before the ranks were looked at until after, it woke none.
  auto const before = proxy_ ? proxy_->quiet() : std::optional<u64>(0);
  auto const ranks = before ? quiet(seen) : Quiet{};
  own.known = ranks.known;
  if (proxy_) own.sent = proxy_->sent(), own.received = proxy_->received();
  if (ranks.number && (!proxy_ || proxy_->quiet() == before))
    own.quiet = *ranks.number * 31 + *before;
  return own;
}

std::optional<Error> Watch::failure() {
  auto failure = gang_.failure();
  return failure || !proxy_ ? failure : proxy_->failure();
}

void Watch::poison(Reason reason) {
  // What goes on until the ranks have seen it is not what the report is about.
  each_report(grids_, [&](RankReport& report, u32) { ending_.states.push_back(state_of(report)); });
  for (auto const& grid : grids_)
    std::atomic_ref(grid.control->poison).store(1, std::memory_order_release);
  poisoned_ = true;
  poisoned_at_ = Clock::now();
  ending_.reason = reason;
}

// Alone: the council decides for several processes.
std::optional<Reason> Watch::find_reason(Seen const& seen, bool life) {
  auto const now = Clock::now();
  if (life || seen.waiting + seen.asking == 0) last_life_ = now;
  if (gang_.deadlocked() || question(seen) == true) return Reason::deadlock;
  if (deadline_.count() != 0 && now - last_life_ > deadline_) return Reason::deadline;
  return std::nullopt;
}

Ending Watch::until_end() {
  u64 signs = 0;
  for (;;) {
    if (!gang_.finished()) gang_.doze(look_every);
    else if (council_) council_->wait(look_every);
    for (auto& log : logs_) lines_ += log.drain();
    bool const ended = gang_.finished();
    if (ended && !council_) break;
    auto const seen = look();
    u64 const life = seen.signs_of_life * 31 + lines_;
    std::optional<Reason> reason;
    if (seen.failed != 0 || failure()) {
      reason = Reason::failed;
      if (council_ && ending_.reason != Reason::failed) council_->poison(Reason::failed);
    }
    if (council_) {
      auto const verdict = council_->sit(own(seen, life, ended));
      if (!reason && verdict.poison != Reason::finished) reason = verdict.poison;
      if (verdict.over) {
        ending_.reason = std::max(ending_.reason, reason.value_or(Reason::finished));
        break;
      }
    } else if (!reason && !poisoned_) {
      reason = find_reason(seen, life != signs);
    }
    signs = life;
    if (!poisoned_ && reason) poison(*reason);
    if (reason == Reason::failed) ending_.reason = Reason::failed;
    if (poisoned_ && !ended && Clock::now() - poisoned_at_ > grace) abandon();
  }
  ending_.failure = failure();
  if (look().failed != 0) ending_.reason = Reason::failed;  // it may have ended before it was seen
  return ending_;
}

void Watch::abandon() const {
  std::string ranks;
  each_report(grids_, [&](RankReport& report, u32 rank) {
    if (state_of(report) == RankState::running && ranks.size() < 200)
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  });
  std::fprintf(stderr,
               "meshpost: the run was ended, but its kernel goes on 10 s later. Ranks that call no "
               "meshpost operation: "
               "%s. A kernel can't be taken off its device, so this process ends; look for an "
               "endless loop there.\n",
               ranks.c_str());
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace meshpost::detail
