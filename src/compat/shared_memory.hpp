#pragma once
#include <memory>

#include "meshpost/world/offsets.hpp"

namespace meshpost::compat {

/// Memory that cudaMalloc gives a dCUDA program under several processes. It is a window of the
/// program's World; the program gets parts of it. cudaMalloc takes from it until it ends. Parts
/// that the program still has then stay valid until they are freed, and so does the World.
class SharedMemory {
 public:
  SharedMemory(char* base, u64 size);
  ~SharedMemory();
  SharedMemory(SharedMemory const&) = delete;
  SharedMemory& operator=(SharedMemory const&) = delete;

  /// Gives no more parts. `world` lives until all parts have come back.
  void end(std::shared_ptr<void> world);

  struct Pool;

 private:
  std::shared_ptr<Pool> parts_;
};

/// Bytes of a context's shared memory: MESHPOST_DCUDA_MEMORY, else 64 MiB, on GPUs 1 GiB. \throws
/// Error(bad_environment)
u64 shared_memory_bytes(bool on_gpu);

}  // namespace meshpost::compat
