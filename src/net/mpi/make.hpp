#pragma once
#include <mpi.h>

#include <string>

namespace meshpost::net {

/// Makes MPI an engine of this program, over a duplicate of `communicator` that stays until
/// MPI_Finalize. Returns the engine's name: "mpi:0". Collective.
/// \throws Error(bad_environment) without MPI_THREAD_MULTIPLE
std::string register_mpi(MPI_Comm communicator);

/// For the error: `user` needs MPI's threads, and `remedy` says how to give them.
/// \throws Error(bad_environment) as register_mpi; not collective
void check_threads_of_mpi(
    char const* user = "network engine 'mpi'",
    char const* remedy =
        "call MPI_Init_thread with MPI_THREAD_MULTIPLE, or leave MESHPOST_NET empty");

}  // namespace meshpost::net
