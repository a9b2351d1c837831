#pragma once
#include <meshpost/copy/job_memory.hpp>

#include "measure.hpp"

// Bandwidth between the processes of a job.

namespace bandwidth {

/// Places of all processes: "1/pageable:0" is ordinary memory of process 1, "1/shared:0" memory of
/// JobMemory::allocate, "1/pinned:0" pinned memory, "1/cuda:0" its GPU. Each process has the
/// devices that `devices` names, else one GPU or a CPU device. `seed`: process 0's counts.
/// Collective.
Plan plan_across(meshpost::JobMemory& job, std::string const& devices,
                 std::vector<std::string> const& places, std::vector<std::string> const& variants,
                 meshpost::u64 seed);

/// Every pair of places in two processes. One process after the other copies to and from the
/// others, which do nothing meanwhile. Process 0 gets the results. Collective.
std::vector<Result> measure_across(meshpost::JobMemory& job, Plan const& plan);

}  // namespace bandwidth
