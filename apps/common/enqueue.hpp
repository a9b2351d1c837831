#pragma once
// Work on a stream that is written once for all kinds of device: a plain kernel on a GPU, a
// function on the stream's thread on a CPU device.
#include <meshpost/meshpost.hpp>

#include <algorithm>

namespace meshpost::apps {

inline constexpr u32 plain_threads = 256;  // of a block

#if defined(__CUDACC__)
template <class Work>
__global__ void __launch_bounds__(plain_threads) plain_kernel(Work const work) {
  work(u64{blockIdx.x} * blockDim.x + threadIdx.x, u64{gridDim.x} * blockDim.x);
}

/// Notes the kernel when the program begins, so that it is loaded before streams wait for each
/// other: loading at the first launch waits for all streams of the GPU.
template <class Work>
struct NotedPlainKernel {
  static bool note() {
    note_gpu_entry(reinterpret_cast<void const*>(&plain_kernel<Work>));
    return true;
  }
  static inline bool const noted = note();
};
#endif

/// Shared memory of each multiprocessor of a GPU, bytes; 0 of a CPU device.
inline u64 shared_memory(Device const& device) {
#if defined(__CUDACC__)
  int bytes = 0;
  if (device.kind() == "cuda" &&
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                             static_cast<int>(device.index())) == cudaSuccess)
    return static_cast<u64>(bytes);
#endif
  static_cast<void>(device);
  return 0;
}

/// Puts `work` on a stream of `device`. It is called as work(first, stride): `first` numbers the
/// threads, `stride` is their number. On a GPU there are about `items` threads, at most 2^19.
/// \throws Error(device_failed)
template <class Work>
void enqueue(Device const& device, Stream& stream, u64 items, Work const& work) {
#if defined(__CUDACC__)
  static_cast<void>(NotedPlainKernel<Work>::noted);
  if (stream.native()) {
    auto const blocks = std::clamp<u64>((items + plain_threads - 1) / plain_threads, 1, 2048);
    auto status = cudaSetDevice(static_cast<int>(device.index()));
    if (status == cudaSuccess) {
      plain_kernel<<<static_cast<u32>(blocks), plain_threads, 0,
                     static_cast<cudaStream_t>(stream.native())>>>(work);
      status = cudaGetLastError();
    }
    if (status != cudaSuccess)
      throw Error(Kind::device_failed, "launch a plain kernel on " + device.name(),
                  cudaGetErrorString(status), "see the driver's log");
    return;
  }
#endif
  static_cast<void>(device), static_cast<void>(items);
  stream.call([work] { work(0, 1); });
}

}  // namespace meshpost::apps
