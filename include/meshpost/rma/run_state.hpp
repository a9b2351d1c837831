#pragma once
#include "meshpost/device/report.hpp"
#include "meshpost/rma/command_queue.hpp"
#include "meshpost/rma/freed_windows.hpp"
#include "meshpost/rma/lanes.hpp"
#include "meshpost/rma/proxy_request.hpp"
#include "meshpost/rma/run_words.hpp"
#include "meshpost/rma/window.hpp"
#include "meshpost/trace/record.hpp"

namespace meshpost {

struct DeliveryLedger;

/// The state of a run that its ranks have on one device. GPU kernels get it by value, so that it
/// lies in constant memory.
struct RunState {
  u32 abi = abi_version;  ///< first, whatever else changes
  u32 world = 0;
  char* heap = nullptr;  ///< device d's part of the symmetric heap begins at heap + d * stride
  u64 stride = 0;
  u32 device = 0, devices = 0;
  u32 ranks_per_device = 0, ranks = 0;
  u64 reciprocal =
      0;         ///< 2^32 / ranks_per_device, rounded up: a division takes a kernel 30 instructions
  u32 zero = 0;  ///< 0, which a compiler can't know
  u64 scratch = 0;  ///< bytes of scratch of a rank
  u64 words = 0;    ///< RunWords of each device, in its part of the heap
  RunNews* news = nullptr;
  /// How many runs will have ended after this one. With `base`, less `*base`: for a run of a graph,
  /// whose number is not known when the graph is made.
  u32 number = 0;
  u32 behind = 0;  ///< 1: queued on GPUs behind others; if one of them fails, this one ends at once
  u32 const* base = nullptr;
  /// 1: another may be queued behind it on a GPU, so the host must read its news before it ends.
  u32 followed = 0;
  /// Ranks of several processes meet at the begin of a run. Each device adds `begin_step` to
  /// RunWords::begun: 1, and in the upper half a number of the kernel that it runs. The sum is
  /// `begin_total` if all run the same kernel. 0: they don't meet.
  u64 begin_step = 0, begin_total = 0;
  RankReport* reports = nullptr;
  Control const* control = nullptr;
  WindowInfo tags;  ///< the world's default counters, without memory
  Communicator device_communicator;
  LogRing log;
  TraceBuffer trace;
  TimerBuffer timers;
  DeliveryLedger* ledger = nullptr;  ///< CPU devices in checked mode
  void* user = nullptr;              ///< Launch::user
  RequestRing requests;
  CommandQueue command_queue;
  Lanes lanes;
  FreedWindows freed;

  MESHPOST_FN static constexpr u64 reciprocal_of(u32 ranks_per_device) {
    return ((u64{1} << 32) + ranks_per_device - 1) / ranks_per_device;
  }
  /// rank / ranks_per_device; exact while their product is below 2^32, which make_layout ensures.
  MESHPOST_FN u32 device_of(u32 rank) const { return static_cast<u32>((rank * reciprocal) >> 32); }
};

}  // namespace meshpost
