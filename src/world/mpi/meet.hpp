#pragma once
#include <mpi.h>

#include "world/job.hpp"

namespace meshpost {

/// Makes a job of the processes of a communicator: process 0 listens, and all know where, and the
/// secret. Collective.
/// \throws as options_over() (rma/mpi.hpp)
Job meet_over(MPI_Comm communicator);

}  // namespace meshpost
