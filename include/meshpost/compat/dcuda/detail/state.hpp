#pragma once
#include "meshpost/compat/detail/cuda_on_cpu.hpp"
#include "meshpost/rma/rank.hpp"

namespace meshpost::compat {

/// Words that devices write into each other's heaps if several processes share a run.
struct DcudaShared {
  WindowInfo parts;  ///< the table of parts, as u64; every rank's part is its device's whole table
  WindowInfo bases;  ///< the same by device: where it has this device's part of the heap
};

/// The host's preparation for the ranks of a device. RunState::user points to it, in the device's
/// memory.
struct DcudaTables {
  void* data;  ///< the user's
  u64 parts;   ///< offset in the symmetric heap of Part[communicator][window][world rank]
  DcudaShared const* shared;  ///< null: one process
};

inline constexpr u32 dcuda_communicators = 2;
inline constexpr u32 dcuda_windows = 64;  ///< of a communicator, at a time

enum class DcudaPhase : u32 { running = 0x64435544, finished };

}  // namespace meshpost::compat

/// See dcuda_device.cu.h. Bytes without constructors: shared memory is not initialised.
///
/// All threads read it. Only thread 0 writes, between two meetings of the threads. So there is a
/// meeting between each read and the next write, and between each read and the last write.
struct dcuda_state {
  alignas(16) unsigned char run_state[sizeof(meshpost::RunState)];  // a copy: this memory is faster
  alignas(
      16) unsigned char rank_memory[sizeof(meshpost::Rank)];  // of thread 0, between two operations
  meshpost::compat::DcudaTables tables;
  meshpost::u64 used[meshpost::compat::dcuda_communicators];  // a bit for each existing window
  unsigned short creations[meshpost::compat::dcuda_communicators][meshpost::compat::dcuda_windows];
  meshpost::u64 timer_start;  // ns; 0: never started
  meshpost::u32 intervals;
  meshpost::compat::DcudaPhase phase;
};

struct dcuda_win {
  meshpost::u32
      number;  // 1 + window + 64 * (communicator + 2 * how often that window was created before)
  MESHPOST_FN friend constexpr bool operator==(dcuda_win a, dcuda_win b) {
    return a.number == b.number;
  }
};
