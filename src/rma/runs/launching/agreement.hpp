#pragma once
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/world/layout.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// What the processes of a World agree on, so that a run which goes well needs no word between
/// them.
///
/// Usually their ranks meet on the devices, where a run begins and where it ends
/// (rma/detail/run_begin.hpp, run_end.hpp). The first launch of each kernel is agreed on, and so is
/// what follows a failure. All that is remembered here is the same in all processes.
///
/// Their hosts agree on each run where some ranks are out of reach, where a process has no devices,
/// and where runs of other Worlds or jobs could hold what this one's wait for.
class Agreement {
 public:
  /// Collective.
  Agreement(ProcessGroup const& group, Layout const& layout);
  ~Agreement();
  Agreement(Agreement const&) = delete;
  Agreement& operator=(Agreement const&) = delete;

  /// Whether ranks of several processes meet by themselves.
  bool ranks_meet() const { return ranks_meet_; }
  /// Whether Worlds of several processes, or jobs, could take GPUs in different orders: then they
  /// are taken in all processes or in none (DeviceLocks::take). Another such World was there when
  /// this one was made, in any process, or the job overlaps others.
  bool crowded() const { return crowded_; }

  /// Whether GPUs have lanes in such a run; none: the processes have not agreed on it yet.
  std::optional<bool> lanes(std::string const& launch) const;
  void remember(std::string const& launch, bool lanes) { launches_[launch] = lanes; }

  /// After a run that failed, or calls that differ, processes may be at different runs,
  /// and have in their memory what others' ranks have sent.
  void invalidate() { invalid_ = true; }
  bool valid() const { return group_.alone() || (!invalid_ && mismatches() == mismatches_); }
  /// Forgets all that was agreed on: processes do so together, and clean up behind that.
  void reset();

  /// What each device adds to RunWords::begun for such a launch.
  static u64 begin_step(std::string const& launch);
  /// What comes of it.
  u64 begin(u64 step, u32 devices) { return begun_ += step * devices; }
  u64 begun() const { return begun_; }

  /// What processes that have begun the next run have said already (TerminationDetector).
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
