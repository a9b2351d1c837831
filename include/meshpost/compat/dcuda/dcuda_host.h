#pragma once
// The host's half of dCUDA (listing 3.3). A kernel compiled by nvcc runs on a GPU; one compiled by
// g++ runs on a CPU device. Compile all sources of a program by the same compiler, as
// meshpost_add_executable does.
//
// Every function throws meshpost::Error. Any thread may call them, one at a time for a context, but
// not from inside a kernel.
#include <cstddef>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/fn.hpp"
#include "meshpost/compat/detail/cuda_on_cpu.hpp"
#include "meshpost/compat/detail/shared_malloc.hpp"

typedef struct dcuda_host_context* dcuda_host_context_handle;
typedef struct dcuda_context* dcuda_context_handle;
typedef void (*dcuda_kernel_t)(dcuda_context_handle);

struct dcuda_rank_info {
  int rank_count;        ///< ranks of all devices
  int rank_responsible;  ///< ranks of this process's device
  int rank_start;        ///< number of the first of them
  int device_count;      ///< devices of this node that take part
  int device_index;      ///< number of this process's device among them
  int node_count;        ///< hosts
  int node_index;        ///< number of this one
  int process_count;     ///< processes
  int process_index;     ///< number of this one
};

namespace meshpost {
struct WorldOptions;
}

namespace meshpost::compat {

/// A kernel and the compiler that made it.
struct DcudaKernel {
  u32 abi;
  dcuda_kernel_t entry;
  bool by_nvcc;
};

void dcuda_init(int argc, char const* const* argv, dcuda_host_context_handle* ctx,
                DcudaKernel kernel, int threads_per_rank);
void dcuda_init(WorldOptions const& options, dcuda_host_context_handle* ctx, DcudaKernel kernel,
                int threads_per_rank);
double dcuda_run(dcuda_host_context_handle ctx, void* gpu_data, std::size_t gpu_size);
/// Number of the context's device among those of its kind.
int dcuda_device(dcuda_host_context_handle ctx);

#if defined(__CUDACC__)
inline constexpr bool by_nvcc = true;
/// cudaMalloc and similar functions must use the context's device.
static inline void use_device(dcuda_host_context_handle ctx) { cudaSetDevice(dcuda_device(ctx)); }
/// The kernel starts on its own stream, so copies that the program has begun must be complete.
static inline void finish_copies() {
  auto const status = cudaDeviceSynchronize();
  if (status != cudaSuccess)
    throw Error(Kind::device_failed, "dcuda_host_run",
                std::string("earlier work on the device failed: ") + cudaGetErrorString(status),
                "check the results of the CUDA calls before it");
}
#else
inline constexpr bool by_nvcc = false;
static inline void use_device(dcuda_host_context_handle /*ctx*/) {}
static inline void finish_copies() {}
#endif

}  // namespace meshpost::compat

// Functions that depend on the compiler are static, because a program may have sources of both
// kinds.

/// Sets up the ranks of one device and outputs their context. `argv` may hold the thesis's options:
/// -d N (device), -n N (processes), -p P (number of this process), -r NAME (host, or host:port, of
/// process 0), -l (leads; process 0 may give it). Other options are the program's own, and so is
/// everything behind "--". argc may be 0.
///
/// The device is cuda:0, or the one of -d; in a job it is the process's share of the host's GPUs.
/// For a kernel compiled by g++ it is cpu:1. MESHPOST_DEVICES and MESHPOST_RANKS override this.
/// `threads_per_rank` is 1 to 1024.
/// \throws Error(bad_argument, bad_environment, out_of_memory)
static inline void dcuda_host_init(int argc, char* argv[], dcuda_host_context_handle* ctx,
                                   dcuda_kernel_t kernel, int threads_per_rank) {
  using namespace meshpost;
  compat::dcuda_init(argc, argv, ctx, {abi_version, kernel, compat::by_nvcc}, threads_per_rank);
  compat::use_device(*ctx);
}

/// The same with the options of a World (meshpost/rma/world.hpp), which name one device.
static inline void dcuda_host_init(meshpost::WorldOptions const& options,
                                   dcuda_host_context_handle* ctx, dcuda_kernel_t kernel,
                                   int threads_per_rank) {
  using namespace meshpost;
  compat::dcuda_init(options, ctx, {abi_version, kernel, compat::by_nvcc}, threads_per_rank);
  compat::use_device(*ctx);
}

/// The number of ranks, and the ranks of this process.
void dcuda_host_get_rank_info(dcuda_host_context_handle ctx, dcuda_rank_info* rank_info);

/// Copies `gpu_size` bytes at `gpu_data` to the device, runs the kernel, copies them back, and
/// returns the kernel's time in ms. May be called any number of times. If it throws, the data is
/// unchanged.
/// \throws Error(kernel_failed, deadlock, deadline, device_failed, out_of_memory) naming ranks and
/// operations
static inline double dcuda_host_run(dcuda_host_context_handle ctx, void* gpu_data = nullptr,
                                    std::size_t gpu_size = 0) {
  meshpost::compat::finish_copies();
  return meshpost::compat::dcuda_run(ctx, gpu_data, gpu_size);
}

/// Times of the last run in ms, from dcuda_start_cpu_timer to each dcuda_stop_cpu_timer, first rank
/// to last rank.
std::vector<double> dcuda_host_get_timings(dcuda_host_context_handle ctx);

/// Ends the context. Later uses of it get an error.
void dcuda_host_finish(dcuda_host_context_handle ctx);
