#pragma once
#include "meshpost/device/report.hpp"
#include "meshpost/rma/window.hpp"
#include "meshpost/trace/record.hpp"

namespace meshpost {

struct DeliveryLedger;

/// What a run's ranks know on one device. Passed to GPU kernels by value, so that it lies in constant memory.
struct RunState {
  u32 abi = abi_version;  ///< first, whatever else changes
  u32 world = 0;
  char* heap = nullptr;   ///< device d's part of the symmetric heap begins at heap + d * stride
  u64 stride = 0;
  u32 device = 0, devices = 0;
  u32 ranks_per_device = 0, ranks = 0;
  u64 scratch = 0;        ///< bytes of scratch of a rank
  RankReport* reports = nullptr;
  Control const* control = nullptr;
  WindowInfo tags;        ///< the world's default counters, without memory
  Communicator device_communicator;
  LogRing log;
  TraceBuffer trace;
  TimerBuffer timers;
  DeliveryLedger* ledger = nullptr;  ///< CPU devices in checked mode
  void* user = nullptr;              ///< Launch::user
};

}  // namespace meshpost
