#include "meshpost/array/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "array/box_halo.hpp"
#include "array/box_text.hpp"
#include "array/plan_state.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {

Distribution const& Plan::distribution() const { return state_->distribution; }
u32 Plan::first_part() const { return state_->first; }
u32 Plan::part_count() const { return static_cast<u32>(state_->parts.size()); }

u64 Plan::fingerprint() const { return state_->fingerprint; }
Plan::Most const& Plan::most() const { return state_->most; }

PartPlan const& Plan::of(u32 part) const {
  if (part - state_->first < state_->parts.size()) return state_->parts[part - state_->first];
  throw Error(Kind::bad_argument, "Plan::of",
              fmt::format("part {} is not of this process, which has {} from {} on", part,
                          state_->parts.size(), state_->first),
              "ask the process that has it");
}

u64 Plan::place_of(u32 part, u64 index) const {
  auto const& one = of(part);
  auto const& distribution = state_->distribution;
  u32 const owner = distribution.owner_of(index);
  if (state_->frames) {
    auto const& [boxes, halo] = *state_->frames;
    if (auto const place = place_in_frame(boxes, halo, part, boxes.grid().cell_at(index)))
      return *place;
    throw Error(Kind::bad_argument, "Plan::place_of",
                fmt::format("the frame of part {} has no place for cell {}, which belongs to part "
                            "{}, or it receives nothing there",
                            part, text_of(boxes.grid().cell_at(index)), owner),
                "make a plan with a wider halo, or with corners");
  }
  u64 const place = distribution.place_of(index);
  if (owner == part) return place;
  // The halo is sorted by owner and by place there.
  auto const of_element = [&](u64 other) {
    return std::pair(distribution.owner_of(other), distribution.place_of(other));
  };
  auto const found =
      std::ranges::lower_bound(one.halo, std::pair(owner, place), std::less(), of_element);
  if (found != one.halo.end() && *found == index)
    return one.own + static_cast<u64>(found - one.halo.begin());
  throw Error(Kind::bad_argument, "Plan::place_of",
              fmt::format("part {} has no place for element {}, which belongs to part {}", part,
                          index, owner),
              "name it among the elements that the part needs");
}

Plan Plan::reverse() const {
  auto state = std::make_shared<State>(*state_);
  for (auto& part : state->parts) {
    std::swap(part.sends, part.receives);
    std::swap(part.sent, part.received);
  }
  std::swap(state->most.sent, state->most.received);
  state->fingerprint = ~state->fingerprint;
  return Plan(std::move(state));
}

std::string Plan::explain(Bytes element) const {
  auto const& state = *state_;
  std::string text = state.distribution.describe() + "\n";
  auto out = std::back_inserter(text);
  u64 here = 0, node = 0, beyond = 0, unknown = 0;
  auto const row = [&](char const* direction, PlanEntry const& entry) {
    u32 const process = state.processes[entry.part];
    u64 const bytes = entry.count * element.value;
    bool const known = process != State::elsewhere, near = known && state.near[process];
    auto const way =
        !known ? std::string("by another process")
        : process == state.process
            ? std::string("within the process")
            : fmt::format("{} process {}", near ? "within the node," : "by the network,", process);
    (!known ? unknown : process == state.process ? here : near ? node : beyond) += bytes;
    fmt::format_to(out, "  {} part {}: {} elements, {} bytes, {}\n", direction, entry.part,
                   entry.count, bytes, way);
  };
  for (auto const& part : state.parts) {
    fmt::format_to(out, "part {}: {} own elements, {} in its halo\n", part.part, part.own,
                   part.halo.size());
    for (auto const& entry : part.sends) row("to", entry);
    for (auto const& entry : part.receives) row("from", entry);
  }
  fmt::format_to(out,
                 "in and out: {} bytes within the process, {} within the node, {} by the network",
                 here, node, beyond);
  if (unknown != 0)
    fmt::format_to(out, ", {} by other processes, which only a JobMemory knows", unknown);
  text += '\n';
  return text;
}

}  // namespace meshpost
