// Errors of options_over(). Run by four processes at once.
#include <meshpost/rma/mpi.hpp>

#include <cstdlib>

#include "mpi/communicators.hpp"
#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::rank_in;
using test::says;

TEST(OptionsOverRefuse, no_communicator) {
  EXPECT_TRUE(
      says(error_of([] { options_over(MPI_COMM_NULL); }), Kind::bad_argument, {"MPI_COMM_NULL"}));
}

TEST(OptionsOverRefuse, an_intercommunicator) {
  auto const side = test::split(MPI_COMM_WORLD, rank_in(MPI_COMM_WORLD) == 0 ? 0 : 1, 0);
  auto const between = test::intercommunicator(side.get());
  EXPECT_TRUE(says(error_of([&] { options_over(between.get()); }), Kind::bad_argument,
                   {"intercommunicator", "MPI_Intercomm_merge"}));
}

// A shorter deadline, for the life of this object.
struct StartDeadline {
  explicit StartDeadline(char const* seconds) { setenv("MESHPOST_START_DEADLINE", seconds, 1); }
  ~StartDeadline() { unsetenv("MESHPOST_START_DEADLINE"); }
  StartDeadline(StartDeadline const&) = delete;
  StartDeadline& operator=(StartDeadline const&) = delete;
};

TEST(OptionsOverRefuse, to_wait_for_a_process_that_does_not_come_and_name_it) {
  for (int round = 0; round < 2; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) != 2) {
      StartDeadline const timeout("1");
      auto const error = error_of([] { options_over(MPI_COMM_WORLD); });
      EXPECT_TRUE(says(error, Kind::deadline,
                       {"3 of 4 processes", "1 s", "missing: 2", "MESHPOST_START_DEADLINE"}));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // Undelivered messages do not disturb the next call.
  World const world(options_over(MPI_COMM_WORLD));
  EXPECT_EQ(world.processes(), 4u);
}

TEST(OptionsOverRefuse, to_wait_for_process_0_for_ever) {
  if (rank_in(MPI_COMM_WORLD) != 0) {
    StartDeadline const timeout("0.3");
    auto const error = error_of([] { options_over(MPI_COMM_WORLD); });
    EXPECT_TRUE(says(error, Kind::deadline, {"process 0", "did not answer within 0.3 s"}));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  World const world(options_over(MPI_COMM_WORLD));
  EXPECT_EQ(world.processes(), 4u);
}

TEST(OptionsOverRefuse, what_somebody_else_sends_with_their_tag) {
  auto const own = test::duplicate(MPI_COMM_WORLD);
  int const rank = rank_in(own.get());
  if (rank == 3) {
    MPI_Send("hello", 5, MPI_BYTE, 0, 32767, own.get());
  } else {
    StartDeadline const timeout("0.5");
    auto const error = error_of([&] { options_over(own.get()); });
    EXPECT_TRUE(says(error, Kind::misuse, {"process 3", "tag 32767", "duplicate"}));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(OptionsOverRefuse, networks_that_differ_between_processes) {
  auto const error = error_of(
      [] { options_over(MPI_COMM_WORLD, {.net = rank_in(MPI_COMM_WORLD) == 1 ? "mpi" : "ofi"}); });
  EXPECT_TRUE(says(error, Kind::misuse, {"'mpi'", "'ofi'"}));
}

}  // namespace
}  // namespace meshpost
