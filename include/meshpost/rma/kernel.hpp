#pragma once
#include "meshpost/rma/rank.hpp"

// From a kernel object to the entries that devices start.

namespace meshpost::detail {

#if !defined(__CUDACC_RTC__)
template <class Kernel>
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the order of CpuEntry
void run_on_cpu(void const* kernel, void const* state, Block block, u32 local_rank, void* scratch) {
  Rank self(*static_cast<RunState const*>(state), block, local_rank, scratch);
  if (!self.start()) return;
  (*static_cast<Kernel const*>(kernel))(self);
  self.finish();
}
#endif

#if defined(__CUDACC__)

template <bool lanes, class Kernel>
__device__ inline void run_on_gpu(Kernel const& kernel, RunState const& state) {
  extern __shared__ __align__(16) unsigned char meshpost_scratch[];
  Rank self(state, Block(nullptr, state.reports + blockIdx.x, state.control), blockIdx.x,
            meshpost_scratch, lanes);
  if (!self.start()) return;
  kernel(self);
  self.finish();
}

/// Bytes in which an entry for logical devices keeps the run's state, behind the rank's scratch.
inline constexpr u32 split_state_bytes = (sizeof(RunState) + 15) / 16 * 16;

/// For logical devices that share a GPU, which use no lanes. They get one launch; its blockIdx.y
/// numbers them. `states` lie side by side in memory of the host. Each block copies its own to
/// shared memory, because every acquire drops what the block has cached of other memory.
template <class Kernel>
__device__ inline void run_on_split_gpu(Kernel const& kernel, RunState const* states) {
  extern __shared__ __align__(16) unsigned char meshpost_scratch[];
  u32 dynamic_bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic_bytes));
  auto* const state =
      reinterpret_cast<RunState*>(meshpost_scratch + dynamic_bytes - split_state_bytes);
  Block const block(nullptr, nullptr, nullptr);
  memory::copy(state, states + blockIdx.y, sizeof(RunState), block.thread(), block.threads());
  block.sync();
  Rank self(*state, Block(nullptr, state->reports + blockIdx.x, state->control), blockIdx.x,
            meshpost_scratch, false);
  if (!self.start()) return;
  kernel(self);
  self.finish();
}

template <bool lanes, class Kernel>
__global__ void gpu_entry(__grid_constant__ Kernel const kernel,
                          __grid_constant__ RunState const state) {
  run_on_gpu<lanes>(kernel, state);
}

template <class Kernel>
__global__ void split_gpu_entry(__grid_constant__ Kernel const kernel, RunState const* states) {
  run_on_split_gpu(kernel, states);
}

/// For kernels with a `static constexpr int max_threads`: the compiler fits the registers to it,
/// and to one rank on a multiprocessor. If it is not told, it may leave half of them for a second
/// one.
template <bool lanes, class Kernel>
__global__ void __launch_bounds__(Kernel::max_threads, 1)
    bounded_gpu_entry(__grid_constant__ Kernel const kernel,
                      __grid_constant__ RunState const state) {
  run_on_gpu<lanes>(kernel, state);
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::max_threads, 1)
    bounded_split_gpu_entry(__grid_constant__ Kernel const kernel, RunState const* states) {
  run_on_split_gpu(kernel, states);
}

#endif

}  // namespace meshpost::detail

#if !defined(__CUDACC_RTC__)
#include <string>
#include <type_traits>
#include <typeinfo>

#include "meshpost/device/backend.hpp"

namespace meshpost::detail {

std::string readable_name(std::type_info const& type);

/// With more threads, each has less than 128 registers, and the code that unpacks messages would
/// spill.
inline constexpr int most_threads_with_lanes = 512;

/// False for kernels that have no entry with lanes, since they say so or have too many threads.
template <class Kernel>
constexpr bool may_use_lanes() {
  if constexpr (requires { Kernel::uses_lanes; }) {
    static_assert(std::is_same_v<decltype(Kernel::uses_lanes), bool const>,
                  "a kernel's uses_lanes is a static constexpr bool");
    if (!Kernel::uses_lanes) return false;
  }
  if constexpr (requires { Kernel::max_threads; })
    return Kernel::max_threads <= most_threads_with_lanes;
  return true;
}

/// True if nvcc compiles this. In one program, sources of nvcc and of another compiler may include
/// the same header with a kernel, and their entries differ. So functions that ask for entries have
/// this as a parameter. Otherwise the linker would take one for the other.
#if defined(__CUDACC__)
constexpr bool by_nvcc = true;
#else
constexpr bool by_nvcc = false;
#endif

#if defined(__CUDACC__)
/// Notes a kernel's entries for GPUs when the program begins, for Backend::load_entries.
template <class Kernel>
struct NotedEntries {
  static bool note() {
    if constexpr (requires { Kernel::max_threads; }) {
      note_gpu_entry(reinterpret_cast<void const*>(&bounded_gpu_entry<false, Kernel>));
      if constexpr (may_use_lanes<Kernel>())
        note_gpu_entry(reinterpret_cast<void const*>(&bounded_gpu_entry<true, Kernel>));
      note_gpu_entry(reinterpret_cast<void const*>(&bounded_split_gpu_entry<Kernel>));
    } else {
      note_gpu_entry(reinterpret_cast<void const*>(&gpu_entry<false, Kernel>));
      if constexpr (may_use_lanes<Kernel>())
        note_gpu_entry(reinterpret_cast<void const*>(&gpu_entry<true, Kernel>));
      note_gpu_entry(reinterpret_cast<void const*>(&split_gpu_entry<Kernel>));
    }
    return true;
  }
  static inline bool const noted = note();
};
#endif

/// The entries of `Kernel` that this translation unit was compiled for.
template <class Kernel, bool nvcc>
KernelImage image_of() {
  static_assert(std::is_trivially_copyable_v<Kernel>,
                "a kernel is copied to every device: it may hold windows, numbers and pointers, "
                "nothing that owns memory");
  static_assert(sizeof(Kernel) + sizeof(RunState) <= 4096 - 64,
                "a kernel object may have at most about 3000 bytes");
  KernelImage image;
  image.abi = abi_version;
  // Found once, because it takes longer than the rest of a launch's beginning. Never destroyed,
  // because launches may continue until the process ends.
  static auto const* const name = new std::string(readable_name(typeid(Kernel)));
  image.name = *name;
  image.cpu = &run_on_cpu<Kernel>;
#if defined(__CUDACC__)
  static_cast<void>(NotedEntries<Kernel>::noted);
  if constexpr (requires { Kernel::max_threads; }) {
    image.cuda = reinterpret_cast<void const*>(&bounded_gpu_entry<false, Kernel>);
    if constexpr (may_use_lanes<Kernel>())
      image.cuda_by_warp = reinterpret_cast<void const*>(&bounded_gpu_entry<true, Kernel>);
    image.cuda_split = reinterpret_cast<void const*>(&bounded_split_gpu_entry<Kernel>);
  } else {
    image.cuda = reinterpret_cast<void const*>(&gpu_entry<false, Kernel>);
    if constexpr (may_use_lanes<Kernel>())
      image.cuda_by_warp = reinterpret_cast<void const*>(&gpu_entry<true, Kernel>);
    image.cuda_split = reinterpret_cast<void const*>(&split_gpu_entry<Kernel>);
  }
  image.split_scratch = Bytes{split_state_bytes};
  if constexpr (requires { Kernel::gpu_threads; }) image.gpu_threads = Kernel::gpu_threads;
#endif
  return image;
}

}  // namespace meshpost::detail
#endif
