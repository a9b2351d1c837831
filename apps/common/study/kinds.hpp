#pragma once
#include "exchange.hpp"

// The kinds of Exchange that need other libraries. Without these libraries they are refused.

namespace meshpost::apps {

/// The process that has a device, and the device's number in that process.
struct Owner {
  u32 process, number;
};
/// Of all devices. Collective.
std::vector<Owner> owners_of(World const& world);
/// Of the host's clock, seconds.
double now();

bool has_nccl();
std::unique_ptr<Exchange> make_nccl(std::vector<Part> parts);
bool has_mpi();
/// \throws Error(bad_environment) if mpirun did not start this process
std::unique_ptr<Exchange> make_mpi(std::vector<Part> parts, World const& world);

}  // namespace meshpost::apps
