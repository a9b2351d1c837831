#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::cuda {

std::unique_ptr<Crew> crew();

/// Throws the Error that launch() would throw, but launches nothing.
void fit(GangSpec const& spec);

/// A cooperative launch on each device. \throws Error(out_of_memory) if not all ranks can be
/// resident
std::unique_ptr<Gang> launch(GangSpec const& spec);

/// For whole devices. As Backend::make_graph.
std::unique_ptr<GangGraph> make_graph(std::vector<GangSpec> const& steps);

}  // namespace meshpost::cuda
