#pragma once
#include <sched.h>

#include <optional>

#include "fabric/topology.hpp"

namespace meshpost::fabric {

/// While it lives, memory that this thread touches first, or has the driver pin, comes from `node`.
/// It does only what the process may do: its cores and nodes may be limited.
class OnNode {
 public:
  explicit OnNode(u32 node);
  ~OnNode();
  OnNode(OnNode const&) = delete;
  OnNode& operator=(OnNode const&) = delete;

 private:
  cpu_set_t before_{};
  bool moved_ = false, preferred_ = false;
};

/// The node whose memory holds the page at `pointer`. Nothing if the page was never touched or the
/// kernel does not tell.
std::optional<u32> node_of_memory(void const* pointer);

}  // namespace meshpost::fabric
