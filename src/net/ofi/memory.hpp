#pragma once
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "net/engine.hpp"
#include "net/ofi/provider.hpp"

// Memory that is registered with the provider.

namespace meshpost::net::ofi {

class Memory {
 public:
  Memory(fid_domain* domain, fid_ep* endpoint, Provider const& provider);

  /// Peers may write to it until this object ends.
  RemoteMemory expose(void* memory, u64 size) { return expose(memory, size, std::nullopt); }
  /// Memory of a GPU, by CUDA's number. It can also be the source of writes, if the provider
  /// reaches GPUs.
  RemoteMemory expose(void* memory, u64 size, std::optional<u32> gpu);
  /// Memory for sends and receives. Returns the descriptor that the provider wants with them. Valid
  /// until this object ends.
  void* own(void* memory, u64 size);

  struct Source {
    void* descriptor = nullptr;
    Handle<fid_mr> registered;  ///< during the write; empty if no registration was needed
  };
  /// The source of a write, if its memory is exposed. Nothing if it isn't, or if the provider needs
  /// no descriptor.
  std::optional<Source> exposed(std::span<char const> bytes) const;
  /// Other memory, registered for that write alone: this class could not notice memory that was
  /// unmapped and mapped anew at the same address. Providers that need registered sources keep
  /// registrations themselves, and notice when memory is unmapped.
  Source source(std::span<char const> bytes);

  /// Ends all registrations, for providers that want that before their endpoint is closed.
  void close();

 private:
  Handle<fid_mr> add(void const* memory, u64 size, u64 access, std::optional<u32> gpu = {});

  fid_domain* domain_;
  fid_ep* endpoint_;
  bool register_sources_;
  bool has_gpus_ = false;  // some memory of GPUs is exposed
  int mode_;
  u64 next_key_ = 1;
  std::vector<Handle<fid_mr>> kept_;
  struct Exposed {
    u64 size = 0;
    void* descriptor = nullptr;
  };
  std::map<char const*, Exposed> exposed_;  // by its beginning; the largest one for each
};

}  // namespace meshpost::net::ofi
