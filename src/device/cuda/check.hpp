#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

#include "meshpost/device/backend.hpp"

namespace meshpost::cuda {

/// \throws Error of kind out_of_memory or device_failed unless `status` is success.
void check(cudaError_t status, std::string_view operation);
void check(CUresult status, std::string_view operation);
Error to_error(cudaError_t status, std::string_view operation);

/// The driver's functions, found at run time. So a program with CUDA inside also starts if there is
/// no driver.
struct Driver {
  CUresult (*export_handle)(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                            unsigned long long);
  CUresult (*import_handle)(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType);
  CUresult (*retain_handle)(CUmemGenericAllocationHandle*, void*);
  CUresult (*address_reserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long);
  CUresult (*address_free)(CUdeviceptr, size_t);
  CUresult (*create)(CUmemGenericAllocationHandle*, size_t, CUmemAllocationProp const*,
                     unsigned long long);
  CUresult (*release)(CUmemGenericAllocationHandle);
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*unmap)(CUdeviceptr, size_t);
  CUresult (*set_access)(CUdeviceptr, size_t, CUmemAccessDesc const*, size_t);
  CUresult (*granularity)(size_t*, CUmemAllocationProp const*, CUmemAllocationGranularity_flags);
  CUresult (*address_range)(CUdeviceptr*, size_t*, CUdeviceptr);
  CUresult (*pointer_attribute)(void*, CUpointer_attribute, CUdeviceptr);
  CUresult (*pointer_attributes)(unsigned int, CUpointer_attribute*, void**, CUdeviceptr);
  CUresult (*stream_wait_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
  CUresult (*stream_write_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
  CUresult (*device_attribute)(int*, CUdevice_attribute, CUdevice);
  CUresult (*flush_writes)(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope);
  CUresult (*error_string)(CUresult, char const**);
  CUresult (*context_now)(CUcontext*);
  CUresult (*choose_context)(CUcontext);
  CUresult (*retain_primary)(CUcontext*, CUdevice);
};
Driver const& driver();
/// An attribute of the device with CUDA's number. \throws as check()
int attribute(CUdevice_attribute wanted, u32 device);

/// Makes `device` current on this thread, from now on. \throws as check()
void choose(int device);

/// The same for a scope. After it the earlier device is current again, even if another was chosen
/// meanwhile. If the thread had none, as most have that never called CUDA, it has none again: by
/// cudaSetDevice it would get GPU 0, and CUDA would start that one in a process that doesn't use it
/// (some 100 ms and its memory, or for ever while the null stream of another GPU waits).
/// \throws as check()
class Current {
 public:
  explicit Current(int device);
  /// Any GPU in use, if the thread has none: for calls that would start one only to free something.
  Current();
  ~Current();
  Current(Current const&) = delete;
  Current& operator=(Current const&) = delete;

 private:
  CUcontext before_ = nullptr;
};

}  // namespace meshpost::cuda
