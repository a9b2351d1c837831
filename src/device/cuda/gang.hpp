#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::cuda {

/// For launches that follow each other.
std::unique_ptr<Crew> make_crew();

/// Whether launch() could. \throws Error as it does then, but launches nothing
void fit(GangSpec const& spec);

/// A cooperative launch on each device. \throws Error(out_of_memory) when not all ranks can be
/// resident
std::unique_ptr<Gang> launch(GangSpec const& spec);

}  // namespace meshpost::cuda
