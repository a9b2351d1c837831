#pragma once
// Ranks of CPU devices: fibers on a few worker threads, one launch for all CPU devices of a run.
//
// A fiber that waits leaves its condition with its worker. The worker tests the condition without
// switching to the fiber. So the word may be written by anybody, in this process or another.
#include <span>

#include "device/cpu/launch_resources.hpp"

namespace meshpost::cpu {

inline void store_state(RankReport& report, RankState state) {
  std::atomic_ref(report.state).store(static_cast<u32>(state), std::memory_order_release);
}

/// Thrown to unwind a fiber of a poisoned run. It is no std::exception, so that a kernel does not
/// catch it as one.
struct Unwind {};

class CpuLaunch : public CooperativeLaunch {
 public:
  explicit CpuLaunch(LaunchSpec const& spec);
  /// Waits until no worker touches the launch.
  ~CpuLaunch() override { end_work(); }
  CpuLaunch(CpuLaunch const&) = delete;
  CpuLaunch& operator=(CpuLaunch const&) = delete;

  void doze(std::chrono::microseconds timeout) override;
  bool finished() override { return !resources_.at_work(); }
  bool deadlocked() override { return deadlocked_.load(std::memory_order_acquire); }
  std::optional<u64> quiet() override;
  bool answers() const override { return false; }
  std::vector<u32> running_ranks() const override;
  void count_time() override;
  bool starved(std::chrono::nanoseconds least) override;

  /// The work of a worker: it runs its fibers until all have ended.
  void work(Worker& worker);
  u32 poison() const;  ///< Control::poison
  bool poisoned() const { return poison() != 0; }
  bool may_have_news() const { return spec_.has_news != nullptr; }
  bool has_news(Fiber const& fiber) const;
  void withdraw() const {
    if (spec_.withdraw) spec_.withdraw();
  }
  /// Ends the calling fiber's rank with this fault. The first fault of a rank stands. Unchecked:
  /// the rank's threads share its report and a worker, whose switches order nothing for TSan.
  MESHPOST_UNCHECKED void record_fault(Fiber& fiber, Subject subject, Fault fault, u64 a, u64 b,
                                       u64 c, char const* text);

 private:
  void prepare_fibers();
  void prepare_rank(RankFibers& rank, LaunchGrid const& grid, u32 local);
  void begin_work();
  void end_work();
  Dim3 extent() const;  // of each rank
  FiberView view_of(u32 thread, u32 world_rank) const;
  bool ready(Fiber const& fiber) const;
  bool run_ready(Worker& worker);
  // If a timeline is recorded: around a fiber's turn. See core_slices.cpp.
  static u64 begin_slice(Fiber const& fiber);
  void end_slice(Worker& worker, Fiber const& fiber, u64 begin) const;
  void look_for_deadlock();
  void end_fiber(Fiber& fiber);
  void run_fiber(Fiber& fiber);
  MESHPOST_UNCHECKED static void fiber_body(void* argument);

  std::span<std::unique_ptr<Worker> const> workers() const {
    return std::span(resources_.workers).first(worker_count_);
  }

  LaunchSpec const spec_;
  bool const slices_are_recorded_;
  std::unique_ptr<CpuLaunchResources> const own_resources_;  // null: the caller has given one
  CpuLaunchResources& resources_;
  u32 worker_count_ = 0;            // of the launch resources' workers
  std::atomic<u32> idle_{0};        // workers that have no ready fiber
  std::atomic<u64> awakenings_{0};  // times a worker stopped being idle
  std::atomic<bool> deadlocked_{false};
  std::chrono::steady_clock::time_point attentive_{};  // until then the host does not sleep
};

}  // namespace meshpost::cpu
