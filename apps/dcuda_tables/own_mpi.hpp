#pragma once
#include <meshpost/rma/world.hpp>

namespace dcuda_tables {

/// True if the program was built with MPI.
bool has_mpi();
/// Under mpirun: MPI becomes the network, and each process acts as a node. MPI is finalised when
/// the program ends, so its Worlds must have ended.
/// \throws Error(bad_environment) if the program was built without MPI, or MPI has too few threads
void use_mpi(meshpost::WorldOptions& options, meshpost::u32& process);

}  // namespace dcuda_tables
