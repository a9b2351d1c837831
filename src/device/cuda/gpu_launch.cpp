#include "device/cuda/gpu_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "device/cuda/check.hpp"

namespace meshpost::cuda {
namespace {

constexpr size_t static_shared_limit = 48 * 1024;  // more needs a request to CUDA

}  // namespace

GpuLaunch::GpuLaunch(LaunchSpec const& spec, SharedGrids grids)
    : spec_(spec),
      grids_(std::move(grids)),
      split_(grids_.count > 1),
      entry_(split_         ? spec.image.cuda_split
             : spec.by_warp ? spec.image.cuda_by_warp
                            : spec.image.cuda),
      block_(spec.threads.x != 0           ? dim3(spec.threads.x, spec.threads.y, spec.threads.z)
             : spec.image.gpu_threads != 0 ? dim3(spec.image.gpu_threads)
                                           : dim3(info().default_threads)),
      // The entry's own shared memory lies behind the scratch, aligned like it.
      shared_(split_ ? (spec.scratch + 15) / 16 * 16 + spec.image.split_scratch
                     : spec.scratch.value) {
  if (!entry_)
    throw Error(Kind::bad_argument, "launch " + name(),
                fmt::format("it has no entry for {} logical devices of one GPU", grids_.count),
                "use whole GPUs, such as cuda:0");
}

std::string GpuLaunch::name() const {
  return fmt::format("{} on {}", spec_.image.name, grids_.device->name());
}

void GpuLaunch::fit(CudaLaunchResources& resources) const {
  Fit const key{entry_, device(), threads(), shared_, grids_.ranks, spec_.sharers};
  if (resources.knows(key)) return;
  check_fit();
  resources.remember(key);
}

template <class Use>
cudaError_t GpuLaunch::with_arguments(Use const& use) const {
  void const* const state = grids_.first->state;  // split: the first of several, in a row
  auto* const kernel = const_cast<void*>(spec_.kernel);
  auto* const address = const_cast<void const**>(&state);
  void* with_state[] = {kernel, const_cast<void*>(state)};
  void* with_address[] = {kernel, address};
  void* address_alone[] = {address};
  bool const by_value = spec_.image.arguments == Arguments::kernel_and_state;
  return use(dim3(grids_.first->ranks, grids_.count), split_     ? with_address
                                                      : by_value ? with_state
                                                                 : address_alone);
}

cudaError_t GpuLaunch::start(cudaStream_t stream) const {
  return with_arguments([&](dim3 grid, void** arguments) {
    return cudaLaunchCooperativeKernel(entry_, grid, block_, arguments, shared_, stream);
  });
}

cudaError_t GpuLaunch::add_to(cudaGraph_t graph, cudaGraphNode_t& node) const {
  auto const status = with_arguments([&](dim3 grid, void** arguments) {
    cudaKernelNodeParams launch{};
    launch.func = const_cast<void*>(entry_);
    launch.gridDim = grid;
    launch.blockDim = block_;
    launch.sharedMemBytes = static_cast<unsigned>(shared_);
    launch.kernelParams = arguments;  // CUDA copies them
    auto const before = node;
    return cudaGraphAddKernelNode(&node, graph, before ? &before : nullptr, before ? 1 : 0,
                                  &launch);
  });
  if (status != cudaSuccess) return status;
  cudaLaunchAttributeValue together{};
  together.cooperative = 1;
  return cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeCooperative, &together);
}

void GpuLaunch::check_fit() const {
  Current const current(device());
  auto const what = "launch " + name();
  u32 const threads = this->threads();
  cudaFuncAttributes kernel{};
  check(cudaFuncGetAttributes(&kernel, entry_), what);
  if (threads > static_cast<u32>(kernel.maxThreadsPerBlock))
    throw Error(
        Kind::bad_argument, what,
        fmt::format(
            "{} threads a rank were asked for; with its {} registers a thread at most {} fit",
            threads, kernel.numRegs, kernel.maxThreadsPerBlock),
        "use fewer threads, or give the kernel `static constexpr int max_threads` (a dCUDA "
        "kernel: __launch_bounds__)");
  if (shared_ + kernel.sharedSizeBytes > static_shared_limit) allow_scratch(kernel);
  int a_processor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&a_processor, entry_,
                                                      static_cast<int>(threads), shared_),
        what);
  u32 const most = static_cast<u32>(a_processor) * info().processors / spec_.sharers;
  if (grids_.ranks > most)
    throw Error(
        Kind::out_of_memory, what,
        fmt::format("{} ranks{} were asked for, but only {} can be resident at once: {} on each "
                    "of {} multiprocessors{}, with {} threads, {} registers a thread and {} bytes "
                    "of shared memory",
                    grids_.ranks, of_each(), most, a_processor, info().processors, by_processes(),
                    threads, kernel.numRegs, kernel.sharedSizeBytes + shared_),
        split_ ? "use fewer ranks, logical devices, threads or scratch"
               : "use fewer ranks, threads or scratch");
}

std::string GpuLaunch::of_each() const {
  return split_
             ? fmt::format(", {} on each of {} logical devices,", grids_.first->ranks, grids_.count)
             : std::string();
}

std::string GpuLaunch::by_processes() const {
  return spec_.sharers > 1 ? fmt::format(" that {} processes share", spec_.sharers) : std::string();
}

// Raises the limit, and never lowers it: launches that are known to fit depend on it.
void GpuLaunch::allow_scratch(cudaFuncAttributes const& kernel) const {
  static std::mutex mutex;
  std::scoped_lock const lock(mutex);
  cudaFuncAttributes now{};
  check(cudaFuncGetAttributes(&now, entry_), "launch " + name());
  auto const so_far = static_cast<u64>(now.maxDynamicSharedSizeBytes);
  if (cudaFuncSetAttribute(entry_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(std::max(shared_, so_far))) == cudaSuccess)
    return;
  cudaGetLastError();
  int most = 0;
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device());
  throw Error(
      Kind::out_of_memory, "launch " + name(),
      fmt::format("{} bytes of scratch a rank were asked for; at most {} fit beside {} static ones",
                  spec_.scratch.value, static_cast<u64>(most) - (shared_ - spec_.scratch),
                  kernel.sharedSizeBytes),
      "use less scratch");
}

std::vector<GpuLaunch> launches_of(LaunchSpec const& spec, CudaLaunchResources& resources) {
  if (!spec.image.cuda)
    throw Error(Kind::bad_argument, fmt::format("launch {}", spec.image.name),
                "it was not compiled for GPUs",
                "compile it with meshpost_add_executable where nvcc is found");
  std::vector<GpuLaunch> launches;
  for (auto const& grids : by_physical_device(spec.grids))
    launches.emplace_back(spec, grids).fit(resources);
  return launches;
}

}  // namespace meshpost::cuda
