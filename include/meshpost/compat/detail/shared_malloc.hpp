#pragma once
// Memory that cudaMalloc gives a dCUDA program under several processes: all of them reach it.
#include <cstddef>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace meshpost::compat {

/// True if the last dCUDA context spans processes. Then `data` is memory of it, aligned to 256
/// bytes, or null if none is left.
bool take_shared(std::size_t size, void** data);
enum class Given { yes, not_taken, elsewhere };
/// Gives back memory of take_shared(). Otherwise it tells that nothing was taken there, or that
/// this is other memory.
Given give_shared(void* data);

#if defined(__CUDACC__)
// These replace CUDA's functions in programs that include dcuda.h.

static inline cudaError_t allocate(void** data, std::size_t size) {
  if (!data || size == 0 || !take_shared(size, data)) return ::cudaMalloc(data, size);
  if (*data) return cudaSuccess;
  return ::cudaMalloc(data, ~std::size_t{0} / 2);  // fails, and sets cudaGetLastError()
}
static inline cudaError_t release(void* data) {
  if (!data) return ::cudaFree(data);
  // As cudaFree: work that uses the memory ends first.
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
