#include "device/cuda/ipc_memory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "device/cuda/check.hpp"
#include "device/cuda/memory.hpp"

namespace meshpost::cuda {
namespace {

// Memory of cudaMalloc has a handle, memory of cuMemCreate has a file.
constexpr char const* with_file = "cuMemCreate";

struct Mapping {
  u64 size;
  CUmemGenericAllocationHandle handle;
};
std::mutex shared_mutex;
std::map<void*, Mapping>& mappings() {  // of files
  static auto* const all = new std::map<void*, Mapping>;
  return *all;
}

// Drivers say little about the reason. The remedy lists what they need.
template <class Status>
void require(Status status, char const* what) {
  try {
    check(status, what);
  } catch (Error const& error) {
    throw Error(
        Kind::bad_environment, what, error.cause(),
        "allocate it with cudaMalloc, or cuMemCreate with a POSIX file descriptor as handle "
        "type; in containers share the host's processes and IPC (--pid=host --ipc=host); "
        "let CUDA_VISIBLE_DEVICES name the GPU in both processes");
  }
}

void* map_file(int device, int file, u64 size) {
  Mapping mapping{size, 0};
  // The driver takes the descriptor as a pointer.
  void* const shared = reinterpret_cast<void*>(static_cast<u64>(file));  // NOLINT
  require(driver().import_handle(&mapping.handle, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          "map another process's GPU memory (cuMemImportFromShareableHandle)");
  CUdeviceptr at = 0;
  bool mapped = false;
  try {
    require(driver().address_reserve(&at, size, 0, 0, 0), "reserve addresses");
    require(driver().map(at, size, 0, mapping.handle, 0), "map another process's GPU memory");
    mapped = true;
    CUmemAccessDesc const access{{CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    require(driver().set_access(at, size, &access, 1), "map another process's GPU memory");
  } catch (Error const&) {
    if (mapped) driver().unmap(at, size);
    if (at != 0) driver().address_free(at, size);
    driver().release(mapping.handle);
    throw;
  }
  auto* const begin = reinterpret_cast<void*>(at);
  std::scoped_lock const lock(shared_mutex);
  mappings()[begin] = mapping;
  return begin;
}

}  // namespace

SharedMemory share_memory(void const* pointer) {
  auto const found = identify(pointer);
  if (!found || found->range.id == 0)
    throw Error(Kind::bad_environment, "share GPU memory",
                "the driver does not know its allocation",
                "allocate it with cudaMalloc or cuMemCreate");
  Current const current(static_cast<int>(found->device));
  SharedMemory shared{found->range.id, found->range.begin, found->range.size, {}, {}};
  auto* const begin = const_cast<char*>(found->range.begin);
  // Asked first: otherwise the other call would fail, and tools that watch CUDA would report that.
  int by_malloc = 0;
  driver().pointer_attribute(&by_malloc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                             reinterpret_cast<CUdeviceptr>(begin));
  CUmemGenericAllocationHandle handle = 0;
  if (by_malloc == 0 && driver().retain_handle(&handle, begin) == CUDA_SUCCESS) {
    int file = -1;
    auto const status =
        driver().export_handle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    driver().release(handle);
    require(status, "share GPU memory (cuMemExportToShareableHandle)");
    shared.handle = with_file;
    shared.file = Descriptor(file);
    return shared;
  }
  cudaIpcMemHandle_t ipc{};
  require(cudaIpcGetMemHandle(&ipc, begin), "share GPU memory (cudaIpcGetMemHandle)");
  shared.handle.assign(ipc.reserved, sizeof ipc.reserved);
  return shared;
}

void* adopt_memory(int device, std::string const& handle, int file, Bytes size) {
  Current const current(device);
  if (handle == with_file) return map_file(device, file, size);
  cudaIpcMemHandle_t ipc{};
  std::memcpy(ipc.reserved, handle.data(), std::min(handle.size(), sizeof ipc.reserved));
  void* begin = nullptr;
  require(cudaIpcOpenMemHandle(&begin, ipc, cudaIpcMemLazyEnablePeerAccess),
          "map another process's GPU memory (cudaIpcOpenMemHandle)");
  return begin;
}

void drop_memory(void* adopted) {
  {
    std::scoped_lock const lock(shared_mutex);
    if (auto const found = mappings().extract(adopted); !found.empty()) {
      auto const at = reinterpret_cast<CUdeviceptr>(adopted);
      driver().unmap(at, found.mapped().size);
      driver().address_free(at, found.mapped().size);
      driver().release(found.mapped().handle);
      return;
    }
  }
  Current const any;
  if (cudaIpcCloseMemHandle(adopted) != cudaSuccess) cudaGetLastError();  // failed: context gone
}

}  // namespace meshpost::cuda
