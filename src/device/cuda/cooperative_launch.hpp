#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::cuda {

std::unique_ptr<LaunchResources> launch_resources();

/// Whether launch() could. \throws Error as it does then, but launches nothing
void fit(LaunchSpec const& spec);

/// A cooperative launch on each device. \throws Error(out_of_memory) when not all ranks can be
/// resident
std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const& spec);

/// Of whole devices. As Backend::make_graph.
std::unique_ptr<LaunchGraph> make_graph(std::vector<LaunchSpec> const& steps);

}  // namespace meshpost::cuda
