#pragma once
#include <mpi.h>

#include <string>

namespace meshpost::net {

/// Makes MPI an engine of this program, over a duplicate of `communicator` that stays until
/// MPI_Finalize. Returns the engine's name: "mpi:0". Collective.
/// \throws Error(bad_environment) without MPI_THREAD_MULTIPLE
std::string register_mpi(MPI_Comm communicator);

/// \throws Error(bad_environment) as register_mpi; not collective
void check_threads_of_mpi();

}  // namespace meshpost::net
