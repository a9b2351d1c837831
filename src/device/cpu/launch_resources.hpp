#pragma once
// State that runs of one World on CPU devices pass on: worker threads, fibers and their stacks.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cpu/fiber.hpp"
#include "meshpost/device/backend.hpp"
#include "meshpost/device/cpu/block.hpp"

namespace meshpost::cpu {

class CpuLaunch;
struct Worker;

/// State that the fibers of one rank share. All of them run on one worker.
struct RankFibers {
  LaunchGrid const* grid = nullptr;
  u32 local_rank = 0;
  u32 threads = 1;
  std::atomic<u32> alive{0};    // fibers that have not ended
  std::atomic<u32> arrived{0};  // at the rank's barrier
  std::atomic<u32> generation{0};
  std::atomic<u32> votes[2] = {0, 0};  // of any(), by parity of the generation
  std::vector<char> scratch;
  u64 ready_since = 0;  // written by the worker if slices are recorded; 0: not ready when last seen

  RankReport& report() const { return grid->reports[local_rank]; }
  /// Sets the state of a first run, with zeros in the scratch.
  void prepare(LaunchGrid const& of, u32 local, u32 threads_in_it, Bytes scratch_size);
};

/// One thread of a rank.
struct Fiber : FiberView {
  // The awaited condition. The fiber writes it; its worker and the search for deadlocks read it.
  std::atomic<void const*> word{nullptr};  // null: ready to run
  std::atomic<u64> value{0};
  std::atomic<WordType> type{};
  std::atomic<Compare> compare{};
  std::atomic<bool> takes_news{false};  // LaunchSpec::has_news wakes it, too
  std::atomic<bool> done{false};
  std::atomic<u32> heeds{Control::leave};  // the Control::poison at which it leaves

  CpuLaunch* launch = nullptr;
  Worker* worker = nullptr;
  RankFibers* rank = nullptr;
  std::unique_ptr<Stack> stack;
  Context context;

  /// Puts it at the beginning of `body`, on a stack of this size. It keeps its stack if that fits.
  void prepare(std::size_t stack_size, void (*body)(void*));
};

struct alignas(128) Worker {
  static constexpr u32 nobody = ~u32{0};
  CpuLaunch* launch = nullptr;  // of this turn; null: the thread ends
  Context context;
  std::vector<Fiber*> fibers;     // not yet ended
  bool idle = false;              // counted in CpuLaunch::idle_
  std::atomic<u32> runs{nobody};  // world rank of the fiber that runs
  u64 looked_at_all = 0;          // ns: when slices are recorded, the last look at all its fibers
  std::atomic<u32> turn{0};       // a new number: there is work
  std::thread thread;
  std::atomic<int> id{0};     // the kernel's number of the thread; 0: not yet known
  std::atomic<u32> looks{0};  // at all its fibers
  struct Got {
    std::chrono::nanoseconds time{};  // of a processor
    u32 looks = 0;
  };
  Got counted{};  // the host's: see CpuLaunch::count_time()

  void prepare(CpuLaunch& of);
  /// By its thread.
  void count_look() {
    looks.store(looks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Its thread's share so far.
  Got got() const;
  /// True if its thread has a processor, or waits for one.
  bool wants_to_run() const;
};

/// A launch has the launch resources for itself from its constructor to the end of its destructor.
/// All of it belongs to the launch's host thread, except what workers use from begin() until they
/// are no longer at work.
class CpuLaunchResources : public LaunchResources {
 public:
  CpuLaunchResources() = default;
  ~CpuLaunchResources() override { dismiss(); }
  CpuLaunchResources(CpuLaunchResources const&) = delete;
  CpuLaunchResources& operator=(CpuLaunchResources const&) = delete;

  std::vector<std::unique_ptr<RankFibers>> ranks;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<std::unique_ptr<Worker>> workers;  // may be more than the run has

  /// Makes exactly so many ranks and fibers, and at least so many workers. Keeps existing ones.
  void resize(u32 rank_count, u32 fiber_count, u32 worker_count);
  /// The worker runs its fibers to their end, on its thread. The thread is started if there is
  /// none.
  /// \throws what std::thread throws
  void begin(Worker& worker);
  /// True if a worker may still touch the launch.
  bool at_work() const { return at_work_.load() != 0; }
  /// Ends all threads. None is at work.
  void dismiss();

  /// Wakes the host. Costs nearly nothing if it does not wait. Any thread.
  void wake_host();
  /// Returns after `timeout`, or earlier if, since `over` was false, wake_host() was called or the
  /// last worker ended its work. Does not sleep until `attentive`.
  template <class Over>
  void doze(std::chrono::microseconds timeout, std::chrono::steady_clock::time_point attentive,
            Over const& over) {
    u32 const heard = news_.load();
    if (!over()) await_news(heard, timeout, attentive);
  }

 private:
  void serve(Worker& worker);
  void await_news(u32 heard, std::chrono::microseconds timeout,
                  std::chrono::steady_clock::time_point attentive);

  std::atomic<u32> at_work_{0};  // workers that have begun and not ended
  std::atomic<u32> news_{0};     // number of calls that wake the host
  std::atomic<u32> dozing_{0};   // threads that sleep until such a call
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace meshpost::cpu
