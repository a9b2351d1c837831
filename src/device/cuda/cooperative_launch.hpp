#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::cuda {

std::unique_ptr<LaunchResources> launch_resources();

/// Throws the Error that launch() would throw, but launches nothing.
void fit(LaunchSpec const& spec);

/// A cooperative launch on each device. \throws Error(out_of_memory) if not all ranks can be
/// resident
std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const& spec);

/// For whole devices. As Backend::make_graph.
std::unique_ptr<LaunchGraph> make_graph(std::vector<LaunchSpec> const& steps);

}  // namespace meshpost::cuda
