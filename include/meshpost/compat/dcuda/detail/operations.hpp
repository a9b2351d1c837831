#pragma once
#include "meshpost/compat/dcuda/dcuda_device.cu.h"
#include "meshpost/compat/dcuda/detail/log.hpp"

#if !defined(__CUDACC__)
#include "meshpost/base/error.hpp"
#endif

// Maps dCUDA's functions to those of Rank.

namespace meshpost::compat {

/// The block of the rank that runs here.
__device__ inline Block this_block(RunState const& run) {
#if defined(__CUDACC__)
  return {nullptr, run.reports + blockIdx.x, run.control};
#else
  return {cpu::current_fiber(), run.reports + blockIdx.x, run.control};
#endif
}

__device__ inline RunState const& run_of(dcuda_state const& gst) {
  return *reinterpret_cast<RunState const*>(gst.run_state);
}

/// The calling thread's copy of the rank. Fails if dCUDA may not be used now.
__device__ inline Rank rank_of(dcuda_state const& gst) {
  bool const known = gst.phase == DcudaPhase::running || gst.phase == DcudaPhase::finished;
  if (!known) {  // nothing is known, not even how to report it
#if defined(__CUDACC__)
    __trap();
#else
    throw Error(Kind::misuse, "dCUDA", "it was used before dcuda_gpu_init",
                "call dcuda_gpu_init first");
#endif
  }
  auto const& kept = *reinterpret_cast<Rank const*>(gst.rank_memory);
  Rank self = kept.for_thread(this_block(run_of(gst)).fiber());
  self.leave_lanes();  // called here, so that the compiler leaves out code for lanes
  if (gst.phase == DcudaPhase::finished)
    self.fail(Operation::kernel, Fault::misuse, 0, 0, 0, "dCUDA was used after dcuda_gpu_finish");
  return self;
}

/// Calls `work(rank)`, in which all threads meet at least once. Then stores the changed rank.
template <class Work>
__device__ void operate(dcuda_state& gst, Work&& work) {
  Rank self = rank_of(gst);
  work(self);
  if (self.thread() == 0) *reinterpret_cast<Rank*>(gst.rank_memory) = self;
  self.sync();
}

__device__ inline void check_argument(Rank& self, Operation operation, char const* name, i64 value,
                                      i64 least, i64 most) {
  if (value < least || value > most)
    self.fail(operation, Fault::argument, static_cast<u64>(value), static_cast<u64>(least),
              static_cast<u64>(most), name);
}

inline constexpr i64 largest_int = 0x7fffffff;
inline constexpr i64 largest_tag = 255;

__device__ inline Communicator const& communicator_of(dcuda_state const& gst, Rank& self,
                                                      Operation operation, int comm) {
  check_argument(self, operation, "the communicator", comm, 0, dcuda_communicators - 1);
  RunState const& run = run_of(gst);
  return comm == DCUDA_COMM_DEVICE ? run.device_communicator : run.tags.communicator;
}

/// The one space of tags: the world's default counters, as ranks of `comm` reach them.
__device__ inline Window<char> tags_of(dcuda_state const& gst, Communicator const& comm) {
  WindowInfo info = run_of(gst).tags;
  info.communicator = comm;
  if (comm.shape != Communicator::Shape::world) info.whole_world = 0;
  return Window<char>(info);
}

/// Several processes: tells each device where this one has its part of the symmetric heap. The
/// first rank of the device does this. The barrier of dcuda_gpu_init makes it visible.
__device__ inline void tell_base(dcuda_state& gst) {
  operate(gst, [&](Rank& self) {
    RunState const& run = run_of(gst);
    if (self.id() % run.ranks_per_device != 0) return self.sync();
    Window<u64> const bases(gst.tables.shared->bases);
    for (u32 device = 0; device < run.devices; ++device)
      self.put_value(bases.at(RankId{device * run.ranks_per_device}, run.device),
                     reinterpret_cast<u64>(run.heap + device * run.stride));
  });
}

}  // namespace meshpost::compat

__device__ inline void dcuda_gpu_init(dcuda_context_handle dcuda, dcuda_state& gst) {
  using namespace meshpost;
  auto const& run = *reinterpret_cast<RunState const*>(dcuda);
  Block const block = compat::this_block(run);
  memory::copy(gst.run_state, &run, sizeof run, block.thread(), block.threads());
  block.sync();  // a Rank reads its state when it is made
  if (block.thread() == 0) {
    gst.tables = *static_cast<compat::DcudaTables const*>(run.user);
    for (auto& used : gst.used) used = 0;
    for (auto& of_communicator : gst.creations)
      for (auto& creations : of_communicator) creations = 0;
    gst.timer_start = 0;
    gst.intervals = 0;
    *reinterpret_cast<Rank*>(gst.rank_memory) =
        Rank(compat::run_of(gst), block, blockIdx.x, nullptr);
    reinterpret_cast<Rank*>(gst.rank_memory)->start();  // its lanes are off: one thread may
    gst.phase = compat::DcudaPhase::running;
  }
  block.sync();
  if (gst.tables.shared) compat::tell_base(gst);
  dcuda_comm_barrier(gst, DCUDA_COMM_WORLD);
}

__device__ inline void dcuda_gpu_finish(dcuda_state& gst) {
  using namespace meshpost;
  dcuda_comm_barrier(gst, DCUDA_COMM_WORLD);
  Rank self = compat::rank_of(gst);
  self.sync();
  if (self.thread() == 0) gst.phase = compat::DcudaPhase::finished;
  self.finish();
  self.sync();
}

__device__ inline void dcuda_get_data(dcuda_state& gst, void** gpu_data) {
  meshpost::compat::rank_of(gst);
  *gpu_data = gst.tables.data;
}

__device__ inline void dcuda_comm_size(dcuda_state& gst, dcuda_comm comm, int* size) {
  using namespace meshpost;
  Rank self = compat::rank_of(gst);
  *size = static_cast<int>(self.size(compat::communicator_of(gst, self, Operation::kernel, comm)));
}

__device__ inline void dcuda_comm_rank(dcuda_state& gst, dcuda_comm comm, int* rank) {
  using namespace meshpost;
  Rank self = compat::rank_of(gst);
  *rank =
      static_cast<int>(self.id(compat::communicator_of(gst, self, Operation::kernel, comm)).value);
}

__device__ inline void dcuda_comm_barrier(dcuda_state& gst, dcuda_comm comm) {
  using namespace meshpost;
  compat::operate(gst, [&](Rank& self) {
    self.barrier(compat::communicator_of(gst, self, Operation::barrier, comm));
  });
}

__device__ inline void dcuda_start_cpu_timer(dcuda_state& gst) {
  using namespace meshpost;
  Rank const self = compat::rank_of(gst);
  self.sync();
  if (self.thread() == 0) gst.timer_start = self.now();
  self.sync();
}

// As in the thesis, each stop takes the time since the last start, for any number of starts. So the
// stop begins a new interval in the run's report.
__device__ inline void dcuda_stop_cpu_timer(dcuda_state& gst) {
  using namespace meshpost;
  Rank self = compat::rank_of(gst);
  u64 const start = gst.timer_start;
  u32 const interval = gst.intervals;
  if (start == 0) self.fail(Operation::timer, Fault::timers);
  if (interval == TimerBuffer::capacity)
    self.fail(Operation::timer, Fault::timers, TimerBuffer::capacity);
  self.sync();
  if (self.thread() == 0) {
    Rank::note_time(self.state(), self.local_id(), interval, 0, start);
    Rank::note_time(self.state(), self.local_id(), interval, 1, self.now());
    gst.intervals = interval + 1;
  }
  self.sync();
}

__device__ inline void dcuda_notify(dcuda_state& gst, int rank, dcuda_comm comm, int tag) {
  using namespace meshpost;
  compat::operate(gst, [&](Rank& self) {
    auto const& communicator = compat::communicator_of(gst, self, Operation::notify, comm);
    compat::check_argument(self, Operation::notify, "the rank", rank, 0,
                           i64{self.size(communicator)} - 1);
    compat::check_argument(self, Operation::notify, "the tag", tag, 0, compat::largest_tag);
    self.notify(compat::tags_of(gst, communicator), RankId{static_cast<u32>(rank)},
                Tag{static_cast<u32>(tag)});
  });
}

__device__ inline int dcuda_test_notifications(dcuda_state& gst, int tag, int count) {
  using namespace meshpost;
  bool found = false;
  compat::operate(gst, [&](Rank& self) {
    compat::check_argument(self, Operation::test, "the tag", tag, 0, compat::largest_tag);
    compat::check_argument(self, Operation::test, "the count", count, 0, WindowInfo::most_awaited);
    found = self.test(Window<char>(compat::run_of(gst).tags), Tag{static_cast<u32>(tag)},
                      static_cast<u32>(count));
  });
  return found ? 1 : 0;
}

__device__ inline void dcuda_wait_notifications(dcuda_state& gst, int tag, int count) {
  using namespace meshpost;
  compat::operate(gst, [&](Rank& self) {
    compat::check_argument(self, Operation::wait, "the tag", tag, 0, compat::largest_tag);
    compat::check_argument(self, Operation::wait, "the count", count, 0, WindowInfo::most_awaited);
    self.wait(Window<char>(compat::run_of(gst).tags), Tag{static_cast<u32>(tag)},
              static_cast<u32>(count));
  });
}
