#pragma once
#include <mpi.h>

#include "meshpost/rma/world.hpp"

// MPI as the launcher of a World, and as its network. Programs that include this link
// meshpost::mpi, a separate library; the rest of meshpost doesn't use MPI.

namespace meshpost {

/// Options for a World of the processes of `communicator`, with their numbers there. All other
/// fields are as in `options`:
///
///     mp::World world(mp::options_over(MPI_COMM_WORLD));
///
/// Any communicator is allowed. Two halves of MPI_COMM_WORLD may have their own Worlds at the same
/// time. A communicator of one process makes a World of that process alone. MPI only tells the
/// processes where process 0 listens and what the job's secret is; they then join by TCP, as under
/// any other launcher. Several Worlds may be made of the same options, one after the other or at
/// once. MPI may be finalised before these Worlds end, unless it is their network.
///
/// `net` "mpi" (MESHPOST_NET=mpi) makes MPI the network between nodes. It requires
/// MPI_THREAD_MULTIPLE, and takes a duplicate of the communicator, which it keeps until
/// MPI_Finalize. The World must end before that.
///
/// Collective over `communicator`. It sends messages with tag 32767 over it: no other thread may
/// then be receiving from any source with any tag there. Call it from a thread that may call MPI.
/// \throws Error(misuse) if MPI is not initialised, or is finalised, or this thread may not call
/// it; Error(bad_argument) for MPI_COMM_NULL and for an intercommunicator; Error(deadline) naming
/// the processes that did not make this call within MESHPOST_START_DEADLINE; Error(bad_environment)
/// if the hosts can't reach each other, or MPI can't be the network
WorldOptions options_over(MPI_Comm communicator, WorldOptions options = {});

}  // namespace meshpost
