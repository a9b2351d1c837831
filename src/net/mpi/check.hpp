#pragma once
#include <mpi.h>

namespace meshpost::net::mpi {

/// \throws Error(misuse) naming `operation` if MPI is not initialised, or is finalised, or this
/// thread may not call it
void check_may_call(char const* operation);

/// \throws Error(bad_argument) for MPI_COMM_NULL and for an intercommunicator
void check_communicator(char const* operation, MPI_Comm communicator);

}  // namespace meshpost::net::mpi
