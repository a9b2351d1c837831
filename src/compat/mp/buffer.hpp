#pragma once
#include <vector>

#include "meshpost/device/device.hpp"

namespace meshpost::compat::mp {

/// The GPU whose memory this is; null: it is the host's.
Device* gpu_of(void const* memory);

/// Memory of a program, in one block or several, as one row of bytes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* memory, u64 bytes) { add(memory, bytes); }
  void add(void* memory, u64 bytes);

  u64 size() const { return size_; }
  /// Copies between [offset, offset + bytes) and memory of the host.
  void read(u64 offset, void* host, u64 bytes) const;
  void write(u64 offset, void const* host, u64 bytes) const;

 private:
  struct Block {
    char* memory;
    u64 bytes;
    Device* gpu;
  };
  template <class Work>
  void each(u64 offset, u64 bytes, Work&& work) const;

  std::vector<Block> blocks_;
  u64 size_ = 0;
};

}  // namespace meshpost::compat::mp
