#pragma once
#include <optional>
#include <vector>

#include "meshpost/world/heap.hpp"
#include "net/engine.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// The parts of the symmetric heap of processes out of reach that an engine can write to. These are
/// the parts of CPU devices, and of devices whose memory the engine reaches. For others there is
/// Staging.
class RemoteHeap {
 public:
  RemoteHeap(ProcessGroup const& group, Layout const& layout, Heap const& heap)
      : group_(group), layout_(layout), heap_(heap) {}

  /// Exposes the growth of the heap. Collective, as the growth is.
  void follow(net::Engine& engine);

  struct Target {
    net::RemoteMemory memory;
    u64 offset = 0;  ///< in it
    u64 bytes = 0;   ///< from there to its end
    bool in_host_memory = true;
  };
  std::optional<Target> find(u32 device, u64 offset) const;

  /// Of an own device whose memory only the engine reaches: the number of bytes from there on that
  /// a write can read.
  u64 readable(u32 own, u64 offset) const;

 private:
  struct Growth {
    u64 offset, size;
    std::vector<std::optional<net::RemoteMemory>> memories;  // by device of the world
    std::vector<bool> in_host_memory;                        // by device of the world
    std::vector<bool> readable;                              // by own device
  };
  Growth const* growth_at(u64 offset) const;
  std::string expose(net::Engine& engine, Growth& growth);
  std::string expose(net::Engine& engine, u32 own, u64 offset, u64 size);

  ProcessGroup const& group_;
  Layout const& layout_;
  Heap const& heap_;
  std::vector<Growth> growths_;
  u64 size_ = 0;
  bool warned_ = false;
};

}  // namespace meshpost::detail
