// The main of tests under mpirun: each process plays the same role, or runs the same tests.
#include <meshpost/rma/mpi.hpp>

#include <cstdio>
#include <cstdlib>

#include "support/job.hpp"

namespace {

void play(char const* role) {
  // Made once: a role may make several Worlds of them.
  auto const options = meshpost::options_over(MPI_COMM_WORLD);
  meshpost::test::let_world_options_be([=] { return options; });
  meshpost::test::play(role);
  meshpost::test::let_world_options_be([] { return meshpost::WorldOptions{}; });
}

}  // namespace

int main(int count, char** values) {
  int level = 0, rank = 0, result = 1;
  MPI_Init_thread(&count, &values, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (char const* const nodes = std::getenv("MESHPOST_TEST_NODES"))
    setenv("MESHPOST_NODE", std::to_string(rank % std::atoi(nodes)).c_str(), 1);
  if (char const* const role = std::getenv("MESHPOST_TEST_ROLE")) {
    try {
      play(role);
      result = 0;
    } catch (std::exception const& error) {
      std::printf("process %d: uncaught: %s\n", rank, error.what());
    }
  } else {
    testing::InitGoogleTest(&count, values);
    result = RUN_ALL_TESTS();
  }
  if (result != 0) {
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, result);  // the others may wait for this one
  }
  MPI_Finalize();
}
