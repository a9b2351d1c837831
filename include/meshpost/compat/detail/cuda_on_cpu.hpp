#pragma once
// Definitions that nvcc would provide, for kernels in CUDA C++ that g++ compiles for CPU devices.
// They are those that dCUDA programs use, listed in docs/dcuda.md. Nothing under nvcc.
//
// Every rank has its own worker thread (Launch::thread_a_rank), and the rank's threads are fibers
// of it. So `thread_local` is exactly "shared by the threads of a rank". A run starts new workers,
// so it starts zeroed.

#if !defined(__CUDACC__)
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "meshpost/base/types.hpp"

namespace meshpost::compat {

/// The calling fiber's position. \throws Error(misuse) outside of kernels
Dim3 thread_index();
Dim3 block_extent();
Dim3 block_index();
Dim3 grid_extent();
void sync_threads();

/// Memory aligned to 256 bytes; null if there is none. It comes from take_shared(), else it is this
/// process's alone.
void* allocate(std::size_t size);
void release(void* data);

}  // namespace meshpost::compat

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __launch_bounds__(...)
#define threadIdx (::meshpost::compat::thread_index())
#define blockDim (::meshpost::compat::block_extent())
#define blockIdx (::meshpost::compat::block_index())
#define gridDim (::meshpost::compat::grid_extent())

using dim3 = meshpost::Dim3;
using uint3 = meshpost::Dim3;

inline void __syncthreads() { meshpost::compat::sync_threads(); }

template <class T>
T atomicAdd(T* word, T value) {
  return std::atomic_ref(*word).fetch_add(value, std::memory_order_relaxed);
}

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};

inline cudaError_t cudaMalloc(void** data, std::size_t size) {
  if (!data) return cudaErrorInvalidValue;
  *data = nullptr;
  if (size == 0) return cudaSuccess;
  *data = meshpost::compat::allocate(size);
  return *data ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T>
cudaError_t cudaMalloc(T** data, std::size_t size) {
  void* memory = nullptr;
  cudaError_t const status = cudaMalloc(&memory, size);
  if (data) *data = static_cast<T*>(memory);
  return status;
}
template <class T>
cudaError_t cudaMallocHost(T** data, std::size_t size) {
  return cudaMalloc(data, size);
}
inline cudaError_t cudaFree(void* data) {
  meshpost::compat::release(data);
  return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
inline cudaError_t cudaMemcpy(void* target, void const* source, std::size_t size,
                              cudaMemcpyKind /*kind*/) {
  if (size != 0) std::memmove(target, source, size);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* target, int value, std::size_t size) {
  if (size != 0) std::memset(target, value, size);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline char const* cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess             ? "no error"
         : status == cudaErrorInvalidValue ? "invalid argument"
                                           : "out of memory";
}
#endif
