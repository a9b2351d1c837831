#pragma once
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/world/layout.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// The agreements between the processes of a World, so that a run that goes well needs no message
/// between them.
///
/// Usually their ranks meet on the devices, at the begin and at the end of a run
/// (rma/detail/run_begin.hpp, run_end.hpp). The processes agree on the first launch of each kernel,
/// and after a failure on what follows. Everything remembered here is the same in all processes.
///
/// Otherwise their hosts agree on each run: if some ranks are out of reach, if a process has no
/// devices, or if runs of other Worlds or jobs could hold what this World's runs wait for.
class Agreement {
 public:
  /// Collective.
  Agreement(ProcessGroup const& group, Layout const& layout);
  ~Agreement();
  Agreement(Agreement const&) = delete;
  Agreement& operator=(Agreement const&) = delete;

  /// True if ranks of several processes meet without their hosts.
  bool ranks_meet() const { return ranks_meet_; }
  /// True if Worlds of several processes, or jobs, could take GPUs in different orders. GPUs are
  /// then taken in all processes or in none (DeviceLocks::take). It is so if another such World
  /// existed when this one was made, in any process, or if the job overlaps others.
  bool crowded() const { return crowded_; }

  /// True if GPUs have lanes in such a run. Unset: the processes have not agreed on it yet.
  std::optional<bool> lanes(std::string const& launch) const;
  void remember(std::string const& launch, bool lanes) { launches_[launch] = lanes; }

  /// After a run that failed, or calls that differ, processes may be at different runs. Their
  /// memory may then have what others' ranks have sent.
  void invalidate() { invalid_ = true; }
  bool valid() const { return group_.alone() || (!invalid_ && mismatches() == mismatches_); }
  /// Forgets everything that was agreed on. All processes do so together, and clean up behind it.
  void reset();

  /// The value that each device adds to RunWords::begun for such a launch.
  static u64 begin_step(std::string const& launch);
  /// The value of RunWords::begun after all devices have added `step`.
  u64 begin(u64 step, u32 devices) { return begun_ += step * devices; }
  u64 begun() const { return begun_; }

  /// Messages for the next run from processes that have begun it already (TerminationDetector).
  std::vector<Processes::Message>& early() { return early_; }

 private:
  u64 mismatches() const;

  ProcessGroup const& group_;
  bool ranks_meet_ = false, crowded_ = false, counted_ = false;
  std::map<std::string, bool> launches_;
  std::atomic<bool> invalid_ = false;
  std::atomic<u64> mismatches_ = 0;
  u64 begun_ = 0;
  std::vector<Processes::Message> early_;
};

}  // namespace meshpost::detail
