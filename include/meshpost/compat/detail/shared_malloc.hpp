#pragma once
// What a dCUDA program has from cudaMalloc under several processes: memory that all of them reach.
#include <cstddef>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace meshpost::compat {

/// Whether the last dCUDA context spans processes; then `data` is memory of it, of 256 bytes'
/// alignment, or null if there is none left.
bool take_shared(std::size_t size, void** data);
enum class Given { yes, not_taken, elsewhere };
/// Gives back what was taken so. Else it says that nothing was taken there, or that this is other
/// memory.
Given give_shared(void* data);

#if defined(__CUDACC__)
// In the place of CUDA's, in programs that include dcuda.h.

static inline cudaError_t allocate(void** data, std::size_t size) {
  if (!data || size == 0 || !take_shared(size, data)) return ::cudaMalloc(data, size);
  if (*data) return cudaSuccess;
  return ::cudaMalloc(data, ~std::size_t{0} / 2);  // fails, and cudaGetLastError() knows it
}
static inline cudaError_t release(void* data) {
  if (!data) return ::cudaFree(data);
  // As cudaFree: what uses the memory ends before.
  if (auto const status = ::cudaDeviceSynchronize(); status != cudaSuccess) return status;
  switch (give_shared(data)) {
    case Given::yes: return cudaSuccess;
    case Given::not_taken: return cudaErrorInvalidValue;
    case Given::elsewhere: break;
  }
  return ::cudaFree(data);
}
#endif

}  // namespace meshpost::compat

#if defined(__CUDACC__)
static inline cudaError_t meshpost_dcuda_malloc(void** data, std::size_t size) {
  return meshpost::compat::allocate(data, size);
}
template <class T>
static inline cudaError_t meshpost_dcuda_malloc(T** data, std::size_t size) {
  return meshpost::compat::allocate((void**)(void*)data, size);  // T may be const, as with CUDA
}
static inline cudaError_t meshpost_dcuda_free(void* data) {
  return meshpost::compat::release(data);
}
#define cudaMalloc meshpost_dcuda_malloc
#define cudaFree meshpost_dcuda_free
#endif
