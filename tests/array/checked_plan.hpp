#pragma once
#include <meshpost/array/plan.hpp>

#include <map>
#include <set>

namespace meshpost::test {

/// Plays an exchange by the entries of the plans alone. `plan_of(part)` has each part's. Each
/// element is its own global index, so a halo must come to hold what it names. Returns what is
/// wrong, or nothing.
template <class PlanOf>
std::string wrong_in(Distribution const& distribution, PlanOf&& plan_of) {
  auto const where = [](u32 part, u64 i) {
    return " (element " + std::to_string(i) + " of part " + std::to_string(part) + ")";
  };
  std::map<std::pair<u32, u32>, std::vector<u64>> sent;  // by sender and receiver
  for (u32 part = 0; part < distribution.parts(); ++part) {
    PartPlan const& plan = plan_of(part);
    u64 next = 0;
    for (u32 last = 0; auto const& entry : plan.sends) {
      if (next != 0 && entry.part <= last) return "sends do not ascend" + where(part, next);
      if (entry.offset != next || entry.count == 0)
        return "a gap in what is sent" + where(part, next);
      last = entry.part, next += entry.count;
      for (u64 i = 0; i < entry.count; ++i)
        sent[{part, entry.part}].push_back(
            distribution.index_of(part, plan.sent[entry.offset + i]));
    }
    if (next != plan.sent.count) return "sends do not add up" + where(part, next);
  }
  for (u32 part = 0; part < distribution.parts(); ++part) {
    PartPlan const& plan = plan_of(part);
    std::vector<u64> memory(plan.size(), ~u64{0});
    u64 next = 0;
    for (u32 last = 0; auto const& entry : plan.receives) {
      if (next != 0 && entry.part <= last) return "receives do not ascend" + where(part, next);
      if (entry.offset != next) return "a gap in what is received" + where(part, next);
      last = entry.part, next += entry.count;
      auto const& come = sent[{entry.part, part}];
      if (come.size() != entry.count)
        return "other counts at both ends" + where(part, entry.offset);
      for (auto const& back : plan_of(entry.part).sends)
        if (back.part == part && (back.there != entry.offset || back.offset != entry.there))
          return "other numbers at both ends" + where(part, entry.offset);
      for (u64 i = 0; i < entry.count; ++i) memory[plan.received[entry.offset + i]] = come[i];
      sent.erase({entry.part, part});
    }
    for (u64 k = 0; k < plan.halo.size(); ++k)
      if (memory[plan.own + k] != plan.halo[k]) return "another element came" + where(part, k);
  }
  return sent.empty() ? "" : "somebody sends what nobody receives";
}

}  // namespace meshpost::test
