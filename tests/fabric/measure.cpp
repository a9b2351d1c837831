// Links that are measured.
#include "fabric/measure.hpp"

#include <gtest/gtest.h>

#include "base/no_threads.hpp"
#include "support/errors.hpp"

namespace meshpost::fabric {
namespace {

TEST(TimeTogether, ends_with_an_error_where_a_thread_can_not_start) {
  auto const devices = open_devices("cpu:2");
  auto const machine = discover(devices);
  constexpr u64 size = u64{1} << 16;
  TestGround ground(machine, devices, Bytes{3 * size});
  std::vector<TestGround::Trip> trips;  // each to bytes of its own
  for (u64 i = 0; i < 3; ++i) trips.push_back({&machine.links.at(0), Bytes{size}, Bytes{i * size}});
  EXPECT_GT(time_together(ground, trips, 1), 0);
  int given = 0;
  {
    test::NoThreads const few(
        [&](std::string_view purpose) { return purpose == "measure a link" && ++given == 3; });
    EXPECT_TRUE(test::says(test::error_of([&] { time_together(ground, trips, 1); }),
                           Kind::out_of_memory, {"start a thread to measure a link", "ulimit -u"}));
  }
  EXPECT_GT(time_together(ground, trips, 1), 0);
}

}  // namespace
}  // namespace meshpost::fabric
