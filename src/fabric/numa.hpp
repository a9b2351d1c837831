#pragma once
#include <sched.h>

#include <optional>

#include "fabric/topology.hpp"

namespace meshpost::fabric {

/// While it lives, memory that this thread touches first, or has the driver pin, comes from `node`.
/// Does what the process is allowed to: its cores and nodes may be limited.
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

/// The node whose memory holds the page at `pointer`; nothing if it was never touched or the kernel
/// does not say.
std::optional<u32> node_of_memory(void const* pointer);

}  // namespace meshpost::fabric
