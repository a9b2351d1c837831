#include "meshpost/trace/wait_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "meshpost/trace/timeline.hpp"

namespace meshpost {
namespace {

using ByRank = std::map<u32, RankView const*>;

std::string state_of(ByRank const& ranks, u32 rank) {
  auto const found = ranks.find(rank);
  if (found == ranks.end()) return "is unknown";
  switch (found->second->state) {
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

std::string awaited(RankView const& view, NameOf const& window, NameOf const& communicator) {
  static constexpr char const* signs[] = {"==", "!=", "<", "<=", ">", ">="};
  Note const& note = view.note;
  switch (note.operation) {
    case Operation::wait:
      return fmt::format("waits for tag {} of {}, {} of {} arrived", note.tag, window(note.window),
                         std::max(0, static_cast<i32>(view.observed)), note.count);
    case Operation::wait_until:
      return fmt::format("waits until its word is {} {}, it is {}", signs[static_cast<u8>(view.condition.compare)],
                         number(view.condition, view.condition.value), number(view.condition, view.observed));
    default: return fmt::format("waits in {} of {}", to_string(note.operation), communicator(note.window));
  }
}

std::string culprits(RankView const& view, ByRank const& ranks) {
  if (view.note.operation == Operation::wait && view.could_wake.empty()) return "; nobody has sent it yet";
  if (view.could_wake.empty()) return "";
  if (view.note.operation != Operation::wait) {
    auto const shown = std::min<std::size_t>(view.could_wake.size(), 8);
    return fmt::format("; not there yet: rank{} {}{}", view.could_wake.size() > 1 ? "s" : "",
                       fmt::join(view.could_wake.begin(), view.could_wake.begin() + static_cast<long>(shown), ", "),
                       shown < view.could_wake.size()
                           ? fmt::format(" and {} more", view.could_wake.size() - shown)
                           : fmt::format(", which {}", view.could_wake.size() > 1 ? "have not come"
                                                                                 : state_of(ranks, view.could_wake[0])));
  }
  u32 const rank = view.could_wake.front();
  return fmt::format("; rank {}, which {}, {}", rank, view.sent_before ? "sent it before" : "is expected to send it",
                     state_of(ranks, rank));
}

// Depth-first search along "waits for".
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
  // Whom `rank` waits for, among those that wait: what is known, else its next neighbour, as anybody would do.
  std::vector<u32> next(u32 rank) const {
    auto const& view = *waiting_.at(rank);
    if (!view.could_wake.empty()) return view.could_wake;
    auto const after = waiting_.upper_bound(rank);
    u32 const other = after == waiting_.end() ? waiting_.begin()->first : after->first;
    return other == rank ? std::vector<u32>{} : std::vector<u32>{other};
  }
  std::vector<u32> from(u32 rank) {
    std::vector<u32> path;
    for (u32 at = rank;;) {
      auto const seen = std::ranges::find(path, at);
      if (seen != path.end()) return {seen, path.end()};
      path.push_back(at);
      u32 const here = at;
      for (u32 const other : next(here))
        if (waiting_.contains(other)) {
          at = other;
          break;
        }
      if (at == here) {
        auto const others = next(here);
        return !others.empty() && others.front() == here ? path : std::vector<u32>{};
      }
    }
  }
  std::map<u32, RankView const*> waiting_;
};

}  // namespace

std::vector<u32> find_cycle(std::vector<RankView> const& ranks) { return CycleSearch(ranks).find(); }

std::string wait_report(std::vector<RankView> const& ranks, NameOf const& window, NameOf const& communicator,
                        std::size_t most) {
  ByRank by_rank;
  for (auto const& view : ranks) by_rank[view.rank] = &view;
  std::string text;
  std::size_t listed = 0, waiting = 0, running = 0;
  for (auto const& view : ranks) {
    if (view.state == RankState::running) ++running;
    if (view.state != RankState::waiting) continue;
    if (++waiting > most) continue;
    ++listed;
    text += fmt::format("{}rank {} {}{}", text.empty() ? "" : "\n  ", view.rank, awaited(view, window, communicator),
                        culprits(view, by_rank));
  }
  if (waiting > listed) text += fmt::format("\n  and {} more ranks wait", waiting - listed);
  if (running > 0) text += fmt::format("{}{} rank{} not in a wait", text.empty() ? "" : "\n  ", running,
                                       running > 1 ? "s are" : " is");
  if (auto cycle = find_cycle(ranks); !cycle.empty()) {
    bool const cut = cycle.size() > most;
    u32 const first = cycle.front();
    if (cut) cycle.resize(most);
    text += fmt::format("\n  cycle: rank {}{} -> rank {}", fmt::join(cycle, " -> rank "), cut ? " -> ..." : "", first);
  }
  return text;
}

}  // namespace meshpost
