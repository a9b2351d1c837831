// The greeting of a process, and texts that are no greeting.
#include "world/greeting.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/errors.hpp"
#include "world/wire.hpp"

namespace meshpost::greeting {
namespace {

using test::error_of;
using test::says;

Hello const mine{3, 5, version(), 1234, "node-b", "job 7"};

TEST(Greeting, tells_process_0_who_it_is) {
  auto const read = unpack(pack(mine));
  EXPECT_EQ(read.process, 3u);
  EXPECT_EQ(read.processes, 5u);
  EXPECT_EQ(read.version, version());
  EXPECT_EQ(read.pid, 1234);
  EXPECT_EQ(read.host, "node-b");
  EXPECT_EQ(read.job, "job 7");
}

TEST(Greeting, of_another_version_is_read_as_far_as_all_versions_are_alike) {
  auto const read =
      unpack(wire::Packer().value(u32{3}).value(u32{5}).value(version() + 1).text("x").take());
  EXPECT_EQ(read.process, 3u);
  EXPECT_EQ(read.processes, 5u);
  EXPECT_EQ(read.version, version() + 1);
}

TEST(Greeting, that_is_cut_short_is_an_error) {
  auto const packed = pack(mine);
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_TRUE(
        says(error_of([&] { unpack(packed.substr(0, size)); }), Kind::bad_argument, {"too early"}));
}

TEST(Greeting, of_garbage_is_values_of_it_or_an_error) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  u32 errors = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto garbage = pack(mine).substr(0, random() % 2 ? 12 : 20);  // of this version
    for (auto left = random() % 100; left > 0; --left) garbage += static_cast<char>(random());
    try {
      auto const read = unpack(garbage);
      EXPECT_LT(read.host.size() + read.job.size(), 100u);
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), Kind::bad_argument);
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000u);
}

}  // namespace
}  // namespace meshpost::greeting
