#include "device/cuda/gang.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <thread>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"

namespace meshpost::cuda {
namespace {

constexpr size_t static_shared_limit = 48 * 1024;  // more must be asked for

dim3 block_of(Grid const& grid, Dim3 threads) {
  return threads.x == 0 ? dim3(grid.device->info().default_threads)
                        : dim3(threads.x, threads.y, threads.z);
}

void refuse_blocking_launches(std::string const& kernel) {
  char const* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && std::string_view(blocking) != "0" && std::string_view(blocking) != "")
    throw Error(
        Kind::bad_environment, fmt::format("launch {}", kernel),
        fmt::format(
            "CUDA_LAUNCH_BLOCKING={} makes each launch wait for its kernel, which waits for the "
            "kernels of the other devices",
            blocking),
        "unset CUDA_LAUNCH_BLOCKING");
}

// Loads the kernel on the device (CUDA loads lazily, which could block behind a running kernel) and
// makes sure that all ranks fit at once.
void fit(GangSpec const& spec, Grid const& grid) {
  auto const what = fmt::format("launch {} on {}", spec.image.name, grid.device->name());
  auto const block = block_of(grid, spec.threads);
  u32 const threads = block.x * block.y * block.z;
  cudaFuncAttributes kernel{};
  check(cudaFuncGetAttributes(&kernel, spec.image.cuda), what);
  if (threads > static_cast<u32>(kernel.maxThreadsPerBlock))
    throw Error(
        Kind::bad_argument, what,
        fmt::format(
            "{} threads a rank were asked for; with its {} registers a thread at most {} fit",
            threads, kernel.numRegs, kernel.maxThreadsPerBlock),
        "use fewer threads, or give the kernel `static constexpr int max_threads` (a dCUDA kernel: "
        "__launch_bounds__)");
  if (spec.scratch + kernel.sharedSizeBytes > static_shared_limit) {
    auto const status =
        cudaFuncSetAttribute(spec.image.cuda, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(spec.scratch));
    if (status != cudaSuccess) {
      cudaGetLastError();
      int most = 0;
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                             static_cast<int>(grid.device->index()));
      throw Error(
          Kind::out_of_memory, what,
          fmt::format(
              "{} bytes of scratch a rank were asked for; at most {} fit beside {} static ones",
              spec.scratch.value, most, kernel.sharedSizeBytes),
          "use less scratch");
    }
  }
  int a_processor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&a_processor, spec.image.cuda,
                                                      static_cast<int>(threads), spec.scratch),
        what);
  u32 const most = static_cast<u32>(a_processor) * grid.device->info().processors;
  if (grid.ranks > most)
    throw Error(
        Kind::out_of_memory, what,
        fmt::format(
            "{} ranks were asked for, but only {} can be resident at once: {} on each of {} "
            "multiprocessors, with {} threads, {} registers a thread and {} bytes of shared memory",
            grid.ranks, most, a_processor, grid.device->info().processors, threads, kernel.numRegs,
            kernel.sharedSizeBytes + spec.scratch),
        "use fewer ranks, threads or scratch");
}

class CudaGang : public Gang {
 public:
  explicit CudaGang(GangSpec const& spec) {
    refuse_blocking_launches(spec.image.name);
    if (!spec.image.cuda)
      throw Error(Kind::bad_argument, fmt::format("launch {}", spec.image.name),
                  "it was not compiled for GPUs",
                  "compile it with meshpost_add_executable where nvcc is found");
    for (auto const& grid : spec.grids) {
      Current const current(static_cast<int>(grid.device->index()));
      fit(spec, grid);
      streams_.push_back(make_stream(static_cast<int>(grid.device->index())));
      for (auto const& event : spec.after) streams_.back()->wait(event);
    }
    for (std::size_t i = 0; i < spec.grids.size(); ++i) {
      auto const& grid = spec.grids[i];
      Current const current(static_cast<int>(grid.device->index()));
      void* kernel_and_state[] = {const_cast<void*>(spec.kernel), const_cast<void*>(grid.state)};
      void* state_address[] = {const_cast<void const**>(&grid.state)};
      void** const arguments =
          spec.image.arguments == Arguments::state_address ? state_address : kernel_and_state;
      auto const status = cudaLaunchCooperativeKernel(
          spec.image.cuda, dim3(grid.ranks), block_of(grid, spec.threads), arguments, spec.scratch,
          static_cast<cudaStream_t>(streams_[i]->native()));
      if (status != cudaSuccess) {
        // The devices launched so far wait for this one: end them before saying so.
        for (auto const& launched : spec.grids) launched.control->poison = 1;
        for (auto const& stream : streams_)
          cudaStreamSynchronize(static_cast<cudaStream_t>(stream->native()));
        check(status, fmt::format("launch {} on {}", spec.image.name, grid.device->name()));
      }
      names_.push_back(fmt::format("{} on {}", spec.image.name, grid.device->name()));
    }
  }

  void doze(std::chrono::microseconds patience) override {
    using clock = std::chrono::steady_clock;
    constexpr auto attentive = std::chrono::microseconds(100);
    auto const start = clock::now();
    while (!finished() && clock::now() - start < patience) {
      if (clock::now() - start < attentive) std::this_thread::yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  std::vector<std::shared_ptr<Event>> ends() override {
    std::vector<std::shared_ptr<Event>> events;
    for (auto const& stream : streams_) events.push_back(stream->record());
    return events;
  }
  bool finished() override {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      auto const status = cudaStreamQuery(static_cast<cudaStream_t>(streams_[i]->native()));
      if (status == cudaErrorNotReady) return false;
      if (status != cudaSuccess && !failure_) {
        cudaGetLastError();
        failure_ = to_error(status, names_[i]);
      }
    }
    return true;
  }
  std::optional<Error> failure() override {
    finished();
    return failure_;
  }

 private:
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::string> names_;
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<Gang> launch(GangSpec const& spec) { return std::make_unique<CudaGang>(spec); }

}  // namespace meshpost::cuda
