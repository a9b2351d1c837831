#include "rma/runs/launching/agreement.hpp"

#include <algorithm>
#include <atomic>
#include <set>

#include "base/hash.hpp"

namespace meshpost::detail {
namespace {

std::atomic<u32> worlds_of_several{0};  // of several processes with GPUs; alive in this process

}  // namespace

Agreement::Agreement(ProcessGroup const& group, Layout const& layout) : group_(group) {
  if (group.alone()) return;
  // Runs on the host's cores hold nothing that another run waits for.
  if (!std::ranges::all_of(layout.traits, &DeviceTraits::on_host_cores)) {
    bool const others = worlds_of_several.fetch_add(1) != 0;
    counted_ = true;
    try {
      auto const all = group.exchange("World", others ? "others" : "");
      crowded_ = group.processes().job().overlaps || !std::ranges::all_of(all, &std::string::empty);
    } catch (...) {
      --worlds_of_several;
      throw;
    }
  }
  std::set<u32> const with_devices(layout.processes.begin(), layout.processes.end());
  ranks_meet_ = !crowded_ && !layout.far_processes && !layout.any_far() &&
                with_devices.size() == group.count();
}

Agreement::~Agreement() {
  if (counted_) --worlds_of_several;
}

std::optional<bool> Agreement::lanes(std::string const& launch) const {
  auto const found = launches_.find(launch);
  return found == launches_.end() ? std::nullopt : std::optional(found->second);
}

u64 Agreement::mismatches() const {
  return group_.alone() ? 0 : group_.processes().mismatches(group_.channel());
}

void Agreement::reset() {
  invalid_ = false;
  launches_.clear();
  mismatches_ = mismatches();
  begun_ = 0;
  early_.clear();
}

u64 Agreement::begin_step(std::string const& launch) { return hash_of(launch) << 32 | 1; }

}  // namespace meshpost::detail
