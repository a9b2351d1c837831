#include "meshpost/trace/wait_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "meshpost/trace/timeline.hpp"

namespace meshpost {
namespace {

using ByRank = std::map<u32, RankView const*>;

bool is_absent(ByRank const& ranks, u32 rank) {
  auto const found = ranks.find(rank);
  return found != ranks.end() && found->second->state == RankState::absent;
}

std::string state_of(ByRank const& ranks, u32 rank, ReportNames const& names) {
  auto const found = ranks.find(rank);
  if (found == ranks.end()) return "is unknown";
  switch (found->second->state) {
    case RankState::absent: return "is " + names.absent(rank);
    case RankState::ended: return "has ended";
    case RankState::failed: return "has failed";
    case RankState::waiting: return "waits itself";
    default: return "is still running";
  }
}

std::string number(Condition const& condition, u64 bits) {
  switch (condition.type) {
    case WordType::i32_: return fmt::format("{}", from_bits<i32>(bits));
    case WordType::i64_: return fmt::format("{}", from_bits<i64>(bits));
    case WordType::f32_: return fmt::format("{}", from_bits<float>(bits));
    case WordType::f64_: return fmt::format("{}", from_bits<double>(bits));
    default: return fmt::format("{}", bits);
  }
}

std::string arrived(RankView const& view) {
  i32 const there = std::max(0, static_cast<i32>(view.observed));
  if (static_cast<u32>(there) >= view.note.count) return "which came after the run was ended";
  return fmt::format("{} of {} arrived", there, view.note.count);
}

std::string awaited(RankView const& view, ReportNames const& names) {
  static constexpr char const* signs[] = {"==", "!=", "<", "<=", ">", ">="};
  Note const& note = view.note;
  switch (note.operation) {
    case Operation::wait:
      return fmt::format("waits for tag {} of {}, {}", note.tag, names.window(note.window),
                         arrived(view));
    case Operation::test:
      return fmt::format("tests tag {} of {} again and again, {}", note.tag,
                         names.window(note.window), arrived(view));
    case Operation::wait_until:
      return fmt::format(
          "waits until its word is {} {}, it is {}", signs[static_cast<u8>(view.condition.compare)],
          number(view.condition, view.condition.value), number(view.condition, view.observed));
    case Operation::put:
    case Operation::put_notify:
    case Operation::flush:
    case Operation::get:
      return fmt::format("waits for the network in {}", to_string(note.operation));
    default:
      return fmt::format("waits in {} of {}", to_string(note.operation),
                         names.communicator(note.window));
  }
}

// "rank 3", "ranks 3, 4 and 8 more".
std::string listed(std::vector<u32> const& ranks) {
  auto const shown = std::min<std::size_t>(ranks.size(), 8);
  auto const end = ranks.begin() + static_cast<long>(shown);
  return fmt::format("rank{} {}{}", ranks.size() > 1 ? "s" : "",
                     fmt::join(ranks.begin(), end, ", "),
                     shown < ranks.size() ? fmt::format(" and {} more", ranks.size() - shown) : "");
}

// The ranks that are missing in a collective operation, and those whose state is not known.
std::string missing(RankView const& view, ByRank const& ranks, ReportNames const& names) {
  std::vector<u32> known;
  std::map<std::string, std::vector<u32>> absent;  // by their place
  for (u32 const rank : view.could_wake)
    (is_absent(ranks, rank) ? absent[names.absent(rank)] : known).push_back(rank);
  std::string text;
  if (known.size() == 1)
    text = fmt::format("; not there yet: {}, which {}", listed(known),
                       state_of(ranks, known.front(), names));
  if (known.size() > 1)
    text = fmt::format("; not there yet: {}{}", listed(known),
                       known.size() > 8 ? "" : ", which have not come");
  for (auto const& [place, there] : absent)
    text += fmt::format("; {} {} {}", listed(there), there.size() > 1 ? "are" : "is", place);
  return text;
}

std::string culprits(RankView const& view, ByRank const& ranks, ReportNames const& names) {
  bool const counts =
      view.note.operation == Operation::wait || view.note.operation == Operation::test;
  if (view.note.operation == Operation::wait_until && !view.could_wake.empty())
    return fmt::format("; rank {}, which is expected to store it, {}", view.could_wake.front(),
                       state_of(ranks, view.could_wake.front(), names));
  if (!counts) return missing(view, ranks, names);
  if (view.could_wake.empty()) return "; nobody has sent it yet";
  u32 const rank = view.could_wake.front();
  return fmt::format("; rank {}, which {}, {}", rank,
                     view.sent_before ? "sent it before" : "is expected to send it",
                     state_of(ranks, rank, names));
}

// Depth-first search along "waits for". It keeps its own path instead of recursing, because there
// may be thousands of ranks.
class CycleSearch {
 public:
  explicit CycleSearch(std::vector<RankView> const& ranks) {
    for (auto const& view : ranks)
      if (view.state == RankState::waiting) waiting_[view.rank] = &view;
  }
  std::vector<u32> find() {
    for (auto const& [rank, view] : waiting_)
      if (auto cycle = from(rank); !cycle.empty()) return cycle;
    return {};
  }

 private:
  struct Step {
    u32 rank;
    std::vector<u32> others;  // ranks that it waits for
    std::size_t next = 0;     // the next one of `others` to look at
  };
  // The ranks that `rank` waits for; empty if they are not known.
  std::vector<u32> const& others(u32 rank) const { return waiting_.at(rank)->could_wake; }
  std::vector<u32> from(u32 rank) {
    if (!seen_.insert(rank).second) return {};
    std::vector<Step> path{{rank, others(rank)}};
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next == step.others.size()) {
        path.pop_back();
        continue;
      }
      u32 const other = step.others[step.next++];
      auto const begin = std::ranges::find(path, other, &Step::rank);
      if (begin != path.end()) {
        std::vector<u32> cycle;
        for (auto at = begin; at != path.end(); ++at) cycle.push_back(at->rank);
        return cycle;
      }
      if (waiting_.contains(other) && seen_.insert(other).second)
        path.push_back({other, others(other)});
    }
    return {};
  }
  std::map<u32, RankView const*> waiting_;
  std::set<u32> seen_;  // no cycle goes through these, except those on the path
};

}  // namespace

std::vector<u32> find_cycle(std::vector<RankView> const& ranks) {
  return CycleSearch(ranks).find();
}

std::string wait_report(std::vector<RankView> const& ranks, ReportNames const& names,
                        std::size_t most) {
  ByRank by_rank;
  for (auto const& view : ranks) by_rank[view.rank] = &view;
  std::string text;
  std::size_t listed = 0, waiting = 0, running = 0;
  for (auto const& view : ranks) {
    if (view.state == RankState::running) ++running;
    if (view.state != RankState::waiting && view.state != RankState::asking) continue;
    if (++waiting > most) continue;
    ++listed;
    text += fmt::format("{}rank {} {}{}", text.empty() ? "" : "\n  ", view.rank,
                        awaited(view, names), culprits(view, by_rank, names));
  }
  if (waiting > listed) text += fmt::format("\n  and {} more ranks wait", waiting - listed);
  if (running > 0)
    text += fmt::format("{}{} rank{} not in a wait", text.empty() ? "" : "\n  ", running,
                        running > 1 ? "s are" : " is");
  if (auto cycle = find_cycle(ranks); !cycle.empty()) {
    bool const cut = cycle.size() > most;
    u32 const first = cycle.front();
    if (cut) cycle.resize(most);
    text += fmt::format("\n  cycle: rank {}{} -> rank {}", fmt::join(cycle, " -> rank "),
                        cut ? " -> ..." : "", first);
  }
  return text;
}

}  // namespace meshpost
