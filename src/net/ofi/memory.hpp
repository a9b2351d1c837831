#pragma once
#include <map>
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
  RemoteMemory expose(void* memory, u64 size);
  /// For sends and receives; what the provider wants to be given with them. Until the end.
  void* own(void* memory, u64 size);

  struct Source {
    void* descriptor = nullptr;
    Handle<fid_mr> registered;  ///< while it is read; empty where nothing had to be registered
  };
  /// Memory that a write reads. Registered for that write alone, unless it is exposed: what is
  /// unmapped and mapped anew at one address could not be told apart here. Providers that need
  /// registered sources keep registrations themselves, and see when memory goes.
  Source source(std::span<char const> bytes);

  /// Forgets all, where the provider wants that before its endpoint is closed.
  void close();

 private:
  Handle<fid_mr> add(void const* memory, u64 size, u64 access);

  fid_domain* domain_;
  fid_ep* endpoint_;
  bool register_sources_;
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
