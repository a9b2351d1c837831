#include "device/cuda/check.hpp"

#include <fmt/format.h>

#include <mutex>
#include <vector>

namespace meshpost::cuda {
namespace {

char const* remedy_for(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "use smaller windows or fewer devices; nvidia-smi shows which processes use memory";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
      return "run the program under compute-sanitizer to find the access";
    case cudaErrorNoKernelImageForDevice:
      return "build for this GPU: configure with CMAKE_CUDA_ARCHITECTURES=native on this host";
    case cudaErrorInsufficientDriver:
      return "update the driver, or build with an older CUDA toolkit";
    default: return "see the CUDA manual for this error; nvidia-smi shows the state of the device";
  }
}

template <class F>
void find(F*& function, char const* name) {
  void* found = nullptr;
  auto status = cudaDriverEntryPointSuccess;
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status),
        fmt::format("look up {}", name));
  if (!found || status != cudaDriverEntryPointSuccess)
    throw Error(Kind::bad_environment, "start CUDA", fmt::format("the driver has no {}", name),
                "update the driver to one for CUDA 12 or later");
  function = reinterpret_cast<F*>(found);
}

// The contexts that CUDA's runtime uses for devices. Each is retained once, until the process ends.
class Contexts {
 public:
  CUcontext of(int device) {
    std::scoped_lock const lock(mutex_);
    auto const index = static_cast<std::size_t>(device);
    if (retained_.size() <= index) retained_.resize(index + 1);
    if (!retained_[index])
      check(driver().retain_primary(&retained_[index], device),
            fmt::format("start cuda:{}", device));
    return retained_[index];
  }
  CUcontext any() {
    std::scoped_lock const lock(mutex_);
    for (auto* const one : retained_)
      if (one) return one;
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::vector<CUcontext> retained_;
};
Contexts& contexts() {
  static auto* const all = new Contexts;  // memory may be freed at the process's end
  return *all;
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

}  // namespace

Error to_error(cudaError_t status, std::string_view operation) {
  return {status == cudaErrorMemoryAllocation ? Kind::out_of_memory : Kind::device_failed,
          std::string(operation),
          fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)),
          remedy_for(status)};
}

void check(cudaError_t status, std::string_view operation) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // otherwise the next, unrelated call would report it again
  throw to_error(status, operation);
}

void check(CUresult status, std::string_view operation) {
  if (status == CUDA_SUCCESS) return;
  char const* text = nullptr;
  driver().error_string(status, &text);
  throw Error(status == CUDA_ERROR_OUT_OF_MEMORY ? Kind::out_of_memory : Kind::device_failed,
              std::string(operation),
              text ? text : fmt::format("CUresult {}", static_cast<int>(status)),
              status == CUDA_ERROR_OUT_OF_MEMORY ? remedy_for(cudaErrorMemoryAllocation)
                                                 : remedy_for(cudaErrorUnknown));
}

Driver const& driver() {
  static Driver const one = [] {
    Driver functions{};
    find(functions.address_reserve, "cuMemAddressReserve");
    find(functions.address_free, "cuMemAddressFree");
    find(functions.create, "cuMemCreate");
    find(functions.release, "cuMemRelease");
    find(functions.map, "cuMemMap");
    find(functions.unmap, "cuMemUnmap");
    find(functions.set_access, "cuMemSetAccess");
    find(functions.granularity, "cuMemGetAllocationGranularity");
    find(functions.export_handle, "cuMemExportToShareableHandle");
    find(functions.import_handle, "cuMemImportFromShareableHandle");
    find(functions.retain_handle, "cuMemRetainAllocationHandle");
    find(functions.address_range, "cuMemGetAddressRange");
    find(functions.pointer_attribute, "cuPointerGetAttribute");
    find(functions.pointer_attributes, "cuPointerGetAttributes");
    find(functions.stream_wait_value, "cuStreamWaitValue32");
    find(functions.stream_write_value, "cuStreamWriteValue32");
    find(functions.device_attribute, "cuDeviceGetAttribute");
    find(functions.flush_writes, "cuFlushGPUDirectRDMAWrites");
    find(functions.error_string, "cuGetErrorString");
    find(functions.context_now, "cuCtxGetCurrent");
    find(functions.choose_context, "cuCtxSetCurrent");
    find(functions.retain_primary, "cuDevicePrimaryCtxRetain");
    return functions;
  }();
  return one;
}

int attribute(CUdevice_attribute wanted, u32 device) {
  int value = 0;
  check(driver().device_attribute(&value, wanted, static_cast<CUdevice>(device)),
        fmt::format("ask about cuda:{}", device));
  return value;
}

void choose(int device) {
  if (current_device() == device) return;
  if (auto const status = cudaSetDevice(device); status != cudaSuccess)
    check(status, fmt::format("choose cuda:{}", device));
}

Current::Current(int device) {
  auto const& calls = driver();
  check(calls.context_now(&before_), "ask for the current device");
  auto* const wanted = contexts().of(device);
  if (wanted == before_) return;
  check(calls.choose_context(wanted), fmt::format("choose cuda:{}", device));
}

Current::Current() {
  auto const& calls = driver();
  if (calls.context_now(&before_) != CUDA_SUCCESS || before_) return;
  if (auto* const any = contexts().any()) calls.choose_context(any);
}

Current::~Current() {
  CUcontext now = nullptr;
  if (driver().context_now(&now) == CUDA_SUCCESS && now == before_) return;
  driver().choose_context(before_);
}

}  // namespace meshpost::cuda
