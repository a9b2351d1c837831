#pragma once
#include <meshpost/fabric/machine.hpp>

#include "measure.hpp"

// Predicts the times of meshpost::copy from the measured links of a machine.

namespace bandwidth {

/// Results named `variant`: seconds of meshpost::copy for every ordered pair of places that a
/// route joins, with the route as path.
std::vector<Result> predict(meshpost::Machine const& machine,
                            std::vector<meshpost::Place> const& places,
                            std::vector<meshpost::Bytes> const& sizes, std::string const& variant);

/// The machine in a file that meshpost-topo --json wrote, perhaps edited since. `option` names the
/// argument in errors. \throws Error(bad_argument) if it can't be read, is not such a file, or a
/// link has no rate: a prediction would be a guess
meshpost::Machine read_machine(std::string const& option, std::string const& file);

}  // namespace bandwidth
