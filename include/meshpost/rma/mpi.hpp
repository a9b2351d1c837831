#pragma once
#include <mpi.h>

#include "meshpost/rma/world.hpp"

// MPI as the launcher of a World, and as its network. Programs that include this link
// meshpost::mpi, a library of its own: the rest of meshpost knows no MPI.

namespace meshpost {

/// Options for a World of the processes of `communicator`, numbered as there; all other fields
/// as in `options`:
///
///     mp::World world(mp::options_over(MPI_COMM_WORLD));
///
/// Any communicator will do: two halves of MPI_COMM_WORLD have Worlds of their own at the same
/// time, and one of a single process has a World alone. MPI only tells the processes where process
/// 0 listens and what the job's secret is; they then join by TCP, as under any other launcher.
/// Several Worlds may be made of the same options, one after the other or at once. MPI may be
/// finalised before these Worlds end, unless it is their network.
///
/// `net` "mpi" (MESHPOST_NET=mpi) makes MPI the network between nodes. It wants
/// MPI_THREAD_MULTIPLE, and takes a duplicate of the communicator, which it keeps until
/// MPI_Finalize. The World must end before that.
///
/// Collective over `communicator`. Messages with tag 32767 go through it meanwhile: no other thread
/// may be receiving from any source with any tag there. From a thread that may call MPI.
/// \throws Error(misuse) where MPI is not initialised, or is finalised, or this thread may not call
/// it; Error(bad_argument) for MPI_COMM_NULL and for an intercommunicator; Error(deadline) naming
/// the processes that did not make this call within MESHPOST_START_DEADLINE;
/// Error(bad_environment) where the hosts can't reach each other, or MPI can't be the network
WorldOptions options_over(MPI_Comm communicator, WorldOptions options = {});

}  // namespace meshpost
