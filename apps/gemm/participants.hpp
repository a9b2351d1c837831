#pragma once
#include <string>
#include <vector>

#include "matrix.hpp"
#include "options.hpp"

namespace meshpost::gemm {

/// The memory of a device. Devices with the same `id` share it: CPU devices of a host, logical
/// devices of a GPU, processes on one GPU.
struct DeviceMemory {
  std::string id;
  u64 free = 0;    ///< bytes when the program began
  u64 usable = 0;  ///< --memory, or what is free without `spare_memory`
};

/// Bytes that are left free: for cuBLAS and its kernels on GPUs, for fills and checks on the host.
inline constexpr u64 spare_memory = u64{512} << 20;

/// All devices of the grid, those of all processes, by their number.
struct Participants {
  Devices devices;
  Spread spread{};
  std::vector<std::string> names{};
  std::vector<DeviceMemory> memories{};       ///< empty: nothing is checked before it is allocated
  std::vector<std::vector<u32>> distances{};  ///< PlanOptions::distances
};

/// Opens the devices and lets them reach each other. Sets options.seed to that of the first
/// process. Collective over the processes of `job`. \throws Error(bad_argument) for devices that
/// don't exist or are of different kinds
Participants open_all(Options& options, JobMemory& job);

/// A device of this process.
Device& own_device(Devices const& devices);

/// Bytes that are needed and usable in the fullest of the memories.
struct MemoryUse {
  u32 device = 0;  ///< the first that has this memory
  u64 needed = 0, usable = 0, free = 0;
  bool fits() const { return needed <= usable; }
};
/// The memory where a plan leaves the fewest bytes, or lacks most. `kept`: bytes that the first
/// device needs besides.
MemoryUse memory_use(Plan const& plan, blas::Type type, std::vector<DeviceMemory> const& memories,
                     u64 kept = 0);

/// Options of the plan for a size, from those of the command line.
PlanOptions plan_options(Problem const& problem, Options const& options, Participants const& all);

/// The largest N for which N x N matrices fit on the grid. \throws Error(out_of_memory) if the
/// smallest ones don't fit, naming needed and usable bytes
u64 largest_size(Grid grid, Options const& options, Participants const& all);

/// Throws Error(out_of_memory) with the needed and the free bytes, unless the plan fits.
void require_memory(Plan const& plan, blas::Type type, Participants const& all);

}  // namespace meshpost::gemm
