#pragma once
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "net/engine.hpp"
#include "net/ofi/provider.hpp"

// Memory that the provider has been told of.

namespace meshpost::net::ofi {

class Memory {
 public:
  Memory(fid_domain* domain, fid_ep* endpoint, Provider const& provider);

  /// Peers may write to it until the end.
  RemoteMemory expose(void* memory, u64 size) { return expose(memory, size, std::nullopt); }
  /// Of a GPU, by CUDA's number. Writes can come out of it, where the provider reaches GPUs.
  RemoteMemory expose(void* memory, u64 size, std::optional<u32> gpu);
  /// For sends and receives; what the provider wants to be given with them. Until the end.
  void* own(void* memory, u64 size);

  struct Source {
    void* descriptor = nullptr;
    Handle<fid_mr> registered;  ///< while it is read; empty where nothing had to be registered
  };
  /// Memory that a write reads, if it is exposed; nothing: it isn't, or nobody needs to know.
  std::optional<Source> exposed(std::span<char const> bytes) const;
  /// Other memory, registered for that write alone: what is unmapped and mapped anew at one address
  /// could not be told apart here. Providers that need registered sources keep registrations
  /// themselves, and see when memory goes.
  Source source(std::span<char const> bytes);

  /// Forgets all, where the provider wants that before its endpoint is closed.
  void close();

 private:
  Handle<fid_mr> add(void const* memory, u64 size, u64 access, std::optional<u32> gpu = {});

  fid_domain* domain_;
  fid_ep* endpoint_;
  bool register_sources_;
  bool has_gpus_ = false;  // some of their memory is exposed
  int mode_;
  u64 next_key_ = 1;
  std::vector<Handle<fid_mr>> kept_;
  struct Exposed {
    u64 size = 0;
    void* descriptor = nullptr;
  };
  std::map<char const*, Exposed> exposed_;  // by its beginning; the largest of each
};

}  // namespace meshpost::net::ofi
