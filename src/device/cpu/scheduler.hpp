#pragma once
// Ranks of CPU devices: fibers on a few worker threads, one gang for all CPU devices of a launch.
//
// A fiber that waits leaves its condition with its worker, which tests it without switching to the
// fiber (DESIGN: predicate scan). That works for words that anybody writes, in this process or
// another.
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cpu/fiber.hpp"
#include "meshpost/device/backend.hpp"
#include "meshpost/device/cpu/block.hpp"

namespace meshpost::cpu {

class CpuGang;
struct Worker;

/// What unwinds a fiber of a poisoned run; not a std::exception, so that a kernel does not catch it
/// as one.
struct Unwind {};

/// What the fibers of one rank share. All of them run on one worker.
struct RankFibers {
  Grid const* grid = nullptr;
  u32 local_rank = 0;
  u32 threads = 1;
  std::atomic<u32> alive{0};    // fibers that have not ended
  std::atomic<u32> arrived{0};  // at the rank's barrier
  std::atomic<u32> generation{0};
  std::atomic<u32> votes[2] = {0, 0};  // of any(), by parity of the generation
  std::vector<char> scratch;
  u64 ready_since = 0;  // of its worker, where slices are recorded; 0: not ready when last seen

  RankReport& report() const { return grid->reports[local_rank]; }
};

/// One thread of a rank.
struct Fiber : FiberView {
  // The awaited condition. Written by the fiber, read by its worker and by whoever looks for a
  // deadlock.
  std::atomic<void const*> word{nullptr};  // null: ready to run
  std::atomic<u64> value{0};
  std::atomic<WordType> type{};
  std::atomic<Compare> compare{};
  std::atomic<bool> takes_news{false};  // GangSpec::has_news wakes it, too
  std::atomic<bool> done{false};

  CpuGang* gang = nullptr;
  Worker* worker = nullptr;
  RankFibers* rank = nullptr;
  std::unique_ptr<Stack> stack;
  Context context;
};

struct alignas(128) Worker {
  static constexpr u32 nobody = ~u32{0};
  CpuGang* gang = nullptr;
  Context context;
  std::vector<Fiber*> fibers;     // not yet ended
  bool idle = false;              // counted in CpuGang::idle_
  std::atomic<u32> runs{nobody};  // world rank of the fiber that runs
  u64 looked_at_all = 0;          // ns: when slices are recorded, all its fibers
  std::thread thread;
};

class CpuGang : public Gang {
 public:
  explicit CpuGang(GangSpec const& spec);
  ~CpuGang() override;
  CpuGang(CpuGang const&) = delete;
  CpuGang& operator=(CpuGang const&) = delete;

  void doze(std::chrono::microseconds patience) override;
  bool finished() override { return unfinished_.load(std::memory_order_acquire) == 0; }
  bool deadlocked() override { return deadlocked_.load(std::memory_order_acquire); }
  std::optional<u64> quiet() override;
  bool answers() const override { return false; }
  std::vector<u32> running_ranks() const override;

  bool poisoned() const;
  bool may_have_news() const { return spec_.has_news != nullptr; }
  bool has_news(Fiber const& fiber) const;
  void withdraw() const {
    if (spec_.withdraw) spec_.withdraw();
  }
  /// Ends the calling fiber's rank with this fault; the first fault of a rank stands.
  /// Unchecked: the rank's threads share its report and a worker, whose switches order nothing for
  /// TSan.
  MESHPOST_UNCHECKED void record_fault(Fiber& fiber, Operation operation, Fault fault, u64 a, u64 b,
                                       u64 c, char const* text);

 private:
  void make_fibers(GangSpec const& spec, u32 workers);
  void start_workers();
  void work(Worker& worker);
  bool ready(Fiber const& fiber) const;
  bool run_ready(Worker& worker);
  // Where a timeline is recorded: around a fiber's turn. See core_slices.cpp.
  static u64 begin_slice(Fiber const& fiber);
  void end_slice(Worker& worker, Fiber const& fiber, u64 begin) const;
  void look_for_deadlock();
  void end_fiber(Fiber& fiber);
  void notify_host();
  static void fiber_body(void* argument);

  GangSpec spec_;
  bool const slices_are_recorded_;
  std::vector<std::unique_ptr<RankFibers>> ranks_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<u32> unfinished_{0};  // workers that still have fibers
  std::atomic<u32> idle_{0};        // workers none of whose fibers is ready
  std::atomic<u64> awakenings_{0};  // times a worker stopped being idle
  std::atomic<bool> deadlocked_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace meshpost::cpu
