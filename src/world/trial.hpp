#pragma once
#include <memory>
#include <string>
#include <vector>

#include "meshpost/device/device.hpp"
#include "world/process_group.hpp"
#include "world/reach.hpp"

namespace meshpost {

/// A device whose memory processes of its node are to map, if they can.
struct Offer {
  u32 process = 0;
  std::string device, kind;
};

/// Tries with a small piece of each device which processes of a node map whose memory, as the heap
/// will do it: a driver, or a container, may refuse. `all`: the offers of all processes; `own`: the
/// devices of this one's, in their order. Collective. Returns what was refused, the same
/// everywhere.
std::vector<Refusal> try_to_map(ProcessGroup const& group, std::vector<Offer> const& all,
                                std::vector<std::shared_ptr<Device>> const& own);

}  // namespace meshpost
