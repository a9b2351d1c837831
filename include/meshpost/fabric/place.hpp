#pragma once
#include <compare>
#include <string>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// A memory: "pageable:0" and "pinned:0" (host memory of NUMA node 0), "cuda:1" or "cpu:1" (the
/// memory of that device).
struct Place {
  std::string kind;  ///< "pageable", "pinned", or a kind of device
  u32 number = 0;    ///< NUMA node, or the device's number

  std::string name() const { return kind + ":" + std::to_string(number); }
  bool on_host() const { return kind == "pageable" || kind == "pinned"; }
  auto operator<=>(Place const&) const = default;
};

/// True if it is memory of the host, which the host's threads read and write in place. A device's
/// memory is, too, if its kind uses host memory (DeviceTraits).
bool in_host_memory(Place const& place);

/// The place of that name. \throws Error(bad_argument) that shows the form
Place parse_place(std::string const& name);

}  // namespace meshpost
