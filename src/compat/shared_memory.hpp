#pragma once
#include <memory>

#include "meshpost/world/offsets.hpp"

namespace meshpost::compat {

/// Memory that a dCUDA program under several processes has from cudaMalloc: a window of its World,
/// of which programs get parts. From when it is made until it ends, cudaMalloc takes from it. Parts
/// that a program still has then stay valid until they are freed, and the World with them.
class SharedMemory {
 public:
  SharedMemory(char* base, u64 size);
  ~SharedMemory();
  SharedMemory(SharedMemory const&) = delete;
  SharedMemory& operator=(SharedMemory const&) = delete;

  /// No more parts; `world` lives until all have come back.
  void end(std::shared_ptr<void> world);

  struct Pool;

 private:
  std::shared_ptr<Pool> parts_;
};

/// Bytes of a context's shared memory: MESHPOST_DCUDA_MEMORY, else 64 MiB, on GPUs 1 GiB. \throws
/// Error(bad_environment)
u64 shared_memory_bytes(bool on_gpu);

}  // namespace meshpost::compat
