#pragma once
#include <memory>
#include <vector>

#include "matrix.hpp"
#include "plan.hpp"

namespace meshpost::gemm {

/// Part of a plan that is done: everything, or one half alone, to measure the effect of the
/// overlap.
enum class Work { all, products, fetches };

/// When one process began and ended its part of a run: seconds of the host's steady clock.
struct ProcessTime {
  double begin = 0, end = 0;
};

/// Carries out a plan. Each device has a stream for its products and one each for its fetches of A
/// and of B; events order them. The host only enqueues: no device ever waits for it.
class Executor {
 public:
  /// The matrices are on the plan's grid and outlive the executor. `threads`: of each CPU device.
  /// `peer`: GPUs may read each other's memory.
  /// \throws Error(out_of_memory) for the buffers
  Executor(Plan plan, Devices devices, Distributed& a, Distributed const& b, Distributed& c,
           u32 threads, bool peer);
  ~Executor();
  Executor(Executor const&) = delete;
  Executor& operator=(Executor const&) = delete;

  /// Returns when all devices are done. Returns the elapsed seconds. All devices are idle before
  /// and after. \throws Error(device_failed)
  double run(Work work = Work::all);
  /// Of all processes, in the last run. Hosts have clocks of their own (Spread::one_clock).
  std::vector<ProcessTime> const& process_times() const { return times_; }

  /// The last result becomes the next product's A, without a copy. The old A takes the next result.
  /// Both are cut in the same way if n = k. \throws Error(bad_argument) if n differs from k
  void reuse_result();
  Distributed& left() { return *a_; }
  Distributed& result() { return *c_; }

  /// Memory for fetched panels, on all devices.
  Bytes buffers() const;
  /// Bytes of the copies that the last run has enqueued for the device. 0 for a device of another
  /// process.
  Bytes fetched(u32 device) const;

 private:
  struct DeviceQueues;
  void synchronize();
  void enqueue_step(u32 device, u32 step, Work work);

  Plan plan_;
  Devices devices_;
  Distributed* a_;
  Distributed const& b_;
  Distributed* c_;
  bool peer_;
  std::vector<ProcessTime> times_;
  std::vector<std::unique_ptr<DeviceQueues>> queues_;
};

}  // namespace meshpost::gemm
