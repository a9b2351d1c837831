#include "world/reach.hpp"

#include <fmt/format.h>

#include <set>

#include "world/groups.hpp"

namespace meshpost {
namespace {

std::string and_more(std::size_t pairs) {
  return pairs == 1
             ? ""
             : fmt::format(" (and {} more pair{} likewise)", pairs - 1, pairs == 2 ? "" : "s");
}

}  // namespace

std::vector<u32> groups_that_map(std::vector<Refusal> const& refusals, std::string_view kind,
                                 u32 processes) {
  std::set<std::pair<u32, u32>> refused;
  for (auto const& refusal : refusals)
    if (refusal.kind == kind) refused.emplace(refusal.process, refusal.owner);
  return groups_that_fit(processes,
                         [&](u32 one, u32 other) { return !refused.contains({one, other}); });
}

std::vector<std::string> slow_paths(std::vector<Refusal> const& refusals,
                                    std::vector<SeparatePair> const& separate,
                                    std::vector<std::string> const& names) {
  std::vector<std::string> warnings;
  if (!refusals.empty()) {
    auto const& first = refusals.front();
    warnings.push_back(fmt::format(
        "World: {} can't map memory of {} of {}{}: {}: {}; their ranks reach each other through "
        "the host, which is slower; {}",
        names[first.process], first.device, names[first.owner], and_more(refusals.size()),
        first.error.operation(), first.error.cause(), first.error.remedy()));
  }
  if (!separate.empty()) {
    auto const& first = separate.front();
    warnings.push_back(fmt::format(
        "World: {} and {} run on one host and share no memory{}, as {} sees it: {}; their ranks "
        "reach each other through the network, which is slower; run all processes of a host as "
        "one user and in one network namespace (containers: --network=host), or set MESHPOST_NODE "
        "to a name for each of them if this is intended",
        names[first.process], names[first.other], and_more(separate.size()), names[first.process],
        first.why));
  }
  return warnings;
}

}  // namespace meshpost
