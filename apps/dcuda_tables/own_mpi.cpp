#include "own_mpi.hpp"

#if defined(DCUDA_TABLES_MPI)
#include <meshpost/rma/mpi.hpp>

#include <cstdlib>

namespace dcuda_tables {

bool has_mpi() { return true; }

void use_mpi(meshpost::WorldOptions& options, meshpost::u32& process) {
  int level = MPI_THREAD_SINGLE, rank = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  std::atexit([] { MPI_Finalize(); });
  if (level != MPI_THREAD_MULTIPLE)
    throw meshpost::Error(meshpost::Kind::bad_environment, "--mpi",
                          "this MPI has no MPI_THREAD_MULTIPLE",
                          "use an MPI that was built with it");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  process = static_cast<meshpost::u32>(rank);
  setenv("MESHPOST_NODE", ("node-" + std::to_string(rank)).c_str(), 1);
  options.net = "mpi";
  options = meshpost::options_over(MPI_COMM_WORLD, options);
}

}  // namespace dcuda_tables
#else
namespace dcuda_tables {

bool has_mpi() { return false; }

void use_mpi(meshpost::WorldOptions&, meshpost::u32&) {
  throw meshpost::Error(meshpost::Kind::bad_environment, "--mpi",
                        "this program was built without MPI",
                        "install libopenmpi-dev and build it again, or measure the other engine");
}

}  // namespace dcuda_tables
#endif
