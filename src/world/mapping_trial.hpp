#pragma once
#include <memory>
#include <string>
#include <vector>

#include "meshpost/device/device.hpp"
#include "world/process_group.hpp"
#include "world/reach.hpp"

namespace meshpost {

/// A device whose memory is to be mapped by other processes of its node, if they can.
struct Offer {
  u32 process = 0;
  std::string device, kind;
};

/// Finds which processes of a node can map whose memory: a driver, or a container, may refuse. It
/// tries with a small piece of each device, in the same way as the heap. `all`: the offers of all
/// processes; `own`: the devices of this one, in their order. Collective. Returns the refusals, the
/// same everywhere.
std::vector<Refusal> try_to_map(ProcessGroup const& group, std::vector<Offer> const& all,
                                std::vector<std::shared_ptr<Device>> const& own);

}  // namespace meshpost
