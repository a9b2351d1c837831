#include "fabric/numa.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

// System calls instead of libnuma, because only two are needed.

namespace meshpost::fabric {

OnNode::OnNode(u32 node) {
  auto const& nodes = numa_nodes();
  if (nodes.size() < 2) return;
  std::array<unsigned long, 16> mask{};
  constexpr u32 bits = 8 * sizeof(unsigned long);
  if (node < mask.size() * bits) {
    mask[node / bits] = 1ul << (node % bits);
    preferred_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), mask.size() * bits) == 0;
  }
  auto const at = std::ranges::find(nodes, node, &NumaNode::number);
  if (at == nodes.end() || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (u32 const core : at->cores)
    if (core < CPU_SETSIZE && CPU_ISSET(core, &before_)) CPU_SET(core, &wanted);
  moved_ = CPU_COUNT(&wanted) > 0 && sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

OnNode::~OnNode() {
  if (preferred_) syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0ul);
  if (moved_) sched_setaffinity(0, sizeof before_, &before_);
}

std::optional<u32> node_of_memory(void const* pointer) {
  int node = -1;
  if (syscall(SYS_get_mempolicy, &node, nullptr, 0ul, pointer, MPOL_F_NODE | MPOL_F_ADDR) != 0 ||
      node < 0)
    return std::nullopt;
  return static_cast<u32>(node);
}

}  // namespace meshpost::fabric
