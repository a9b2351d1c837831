#include <algorithm>
#include <fstream>
#include <string>

#include "meshpost/base/error.hpp"
#include "participants.hpp"

#ifdef MESHPOST_APP_CUDA
#include <cuda_runtime.h>
#endif

namespace meshpost::gemm {
namespace {

// The number in a file of the system, 0 if there is none: "max" means no limit.
u64 number_in(char const* path) {
  std::ifstream file(path);
  u64 value = 0;
  return file >> value ? value : 0;
}

u64 free_on_host() {
  u64 free = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    if (name == "MemAvailable:") {
      file >> free;
      free *= 1024;
      break;
    }
    file.ignore(1000, '\n');
  }
  if (free == 0)
    throw Error(Kind::bad_environment, "ask for free memory", "/proc/meminfo has no MemAvailable",
                "give --memory");
  // A container may have less than the host.
  u64 const most = number_in("/sys/fs/cgroup/memory.max");
  u64 const used = number_in("/sys/fs/cgroup/memory.current");
  if (most != 0) free = std::min(free, most - std::min(most, used));
  return free;
}

}  // namespace

u64 free_memory(Device const& device) {
#ifdef MESHPOST_APP_CUDA
  if (device.kind() == "cuda") {
    int before = 0;
    size_t free = 0, all = 0;
    cudaGetDevice(&before);
    auto status = cudaSetDevice(static_cast<int>(device.index()));
    if (status == cudaSuccess) status = cudaMemGetInfo(&free, &all);
    cudaSetDevice(before);
    if (status != cudaSuccess)
      throw Error(Kind::device_failed, "ask for free memory of " + device.name(),
                  cudaGetErrorString(status), "see the first such error, or give --memory");
    return free;
  }
#endif
  if (device.in_host_memory()) return free_on_host();
  return device.info().memory.value;
}

}  // namespace meshpost::gemm
