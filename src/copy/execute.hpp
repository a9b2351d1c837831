#pragma once
#include "copy/request.hpp"
#include "meshpost/copy/route.hpp"

namespace meshpost::copying {

/// A route and the machine that it was planned for, which lives as long as the process.
struct Plan {
  Machine const* machine = nullptr;
  Route route;
  std::string name;  ///< describe(*machine, route)
};

/// The route of a copy. Null if it is the link from one end to the other. Plans are kept, by places
/// and size. There is none for a copy so small that it goes straight. Thread-safe.
/// \throws what this_machine throws
std::shared_ptr<Plan const> plan_for(Request const& request);

/// Begins a copy by a route: a thread of movers() controls each chain. Thread-safe.
StatePtr execute(std::shared_ptr<Plan const> const& plan, Request const& request);

}  // namespace meshpost::copying
