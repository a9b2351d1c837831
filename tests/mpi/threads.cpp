// Times and threads in which MPI may be called: this program initialises it for its main thread
// only.
#include <meshpost/compat/coaccel_mpi.h>
#include <meshpost/rma/mpi.hpp>

#include <thread>

#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

void expect_no_coaccel(std::string const& why) {
  EXPECT_NE(coaccel_mpi_init(MPI_COMM_WORLD), 0);
  char const* const text = coaccel_last_error();
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::string(text).find("coaccel_mpi_init: " + why), std::string::npos) << text;
}

TEST(MpiOfOneThread, goes_through_its_life) {
  EXPECT_TRUE(says(error_of([] { options_over(MPI_COMM_WORLD); }), Kind::misuse,
                   {"not initialised", "MPI_Init"}));
  expect_no_coaccel("MPI is not initialised");
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  if (level == MPI_THREAD_FUNNELED) {
    std::thread([] {
      EXPECT_TRUE(says(error_of([] { options_over(MPI_COMM_WORLD); }), Kind::misuse,
                       {"main thread", "another"}));
    }).join();
    std::thread([] {
      expect_no_coaccel("MPI was initialised for calls of its main thread");
    }).join();
    expect_no_coaccel("a thread of the library calls MPI beside the program's own");
    EXPECT_TRUE(says(error_of([] { options_over(MPI_COMM_WORLD, {.net = "mpi"}); }),
                     Kind::bad_environment, {"MPI_THREAD_MULTIPLE", "MPI_Init_thread"}));
    EXPECT_TRUE(says(error_of([] { options_over(MPI_COMM_WORLD, {.net = "shuffled:1:mpi"}); }),
                     Kind::bad_environment, {"MPI_THREAD_MULTIPLE"}));
  }
  World const world(options_over(MPI_COMM_WORLD, {.net = ""}));
  EXPECT_EQ(world.processes(), 1u);
  MPI_Finalize();
  EXPECT_TRUE(says(error_of([] { options_over(MPI_COMM_WORLD); }), Kind::misuse,
                   {"MPI_Finalize has been called"}));
  expect_no_coaccel("MPI_Finalize has been called");
}

}  // namespace
}  // namespace meshpost

int main(int count, char** values) {
  testing::InitGoogleTest(&count, values);
  return RUN_ALL_TESTS();
}
