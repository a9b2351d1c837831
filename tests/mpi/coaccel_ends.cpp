// Processes that do not come, or leave. Run by two processes.
#include <cstdlib>

#include "mpi/coaccel.hpp"

namespace meshpost::test {
namespace {

TEST(MpiDevicesEnd, a_wait_for_a_copy_that_nobody_makes) {
  Listener const quiet;
  setenv("MESHPOST_DEADLINE", "0.3", 1);
  ASSERT_EQ(coaccel_mpi_init(MPI_COMM_WORLD), 0) << last_error();
  for (bool const out : {true, false}) {
    if (rank() == 0) {
      Opened const far("mpi:1:6");
      Bytes8 bytes(77, poison);
      auto* const there = coaccel_device_malloc(far.device, 77);
      auto const error = finish(far.device, out ? start(far.device, {{there, bytes.data(), 77}})
                                                : start(far.device, {{bytes.data(), there, 77}}));
      expect_says(
          error,
          {out ? "copy 0 of 77 bytes to process 1" : "copy 0 of 77 bytes from process 1", "0.3 s",
           "the other process has not begun it", "its mpi:0:6", "MESHPOST_DEADLINE", "deadline"});
      // Memory that the late copy must not reach any more.
      EXPECT_EQ(bytes, Bytes8(77, poison));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 1) {  // too late
      Opened const far("mpi:0:6");
      Bytes8 bytes(77, 1);
      auto* const there = coaccel_device_malloc(far.device, 77);
      auto* const copy = out ? start(far.device, {{bytes.data(), there, 77}})
                             : start(far.device, {{there, bytes.data(), 77}});
      expect_says(copy ? finish(far.device, copy) : last_error(), {"process 0", "0.3 s"});
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(MpiDevicesEnd, a_wait_for_a_process_that_finalises_MPI) {
  Listener const quiet;
  Opened const far(rank() == 0 ? "mpi:1" : "mpi:0");
  Bytes8 bytes(1000, poison);
  auto* const there = coaccel_device_malloc(far.device, 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0)
    expect_says(finish(far.device, start(far.device, {{bytes.data(), there, 1000}})),
                {"process 1", "MPI_Finalize has been called"});
  bool const first = rank() == 0;
  MPI_Finalize();
  expect_refused(start(far.device, {{there, bytes.data(), 1}}), {"MPI_Finalize has been called"});
  expect_refused(coaccel_device_open(first ? "mpi:1:1" : "mpi:0:1"), {"MPI_Finalize"});
}

}  // namespace
}  // namespace meshpost::test

int main(int count, char** values) {
  int level = 0;
  MPI_Init_thread(&count, &values, MPI_THREAD_MULTIPLE, &level);
  testing::InitGoogleTest(&count, values);
  return RUN_ALL_TESTS();
}
