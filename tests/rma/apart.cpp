// Devices of one process that reach each other by the host's proxy alone: because they are told to,
// or because they are of two kinds.
#include "support/errors.hpp"
#include "support/everything.hpp"
#include "support/users.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

WorldOptions apart(u32 ranks, std::string const& devices = test::devices()) {
  auto options = test::options(ranks, devices);
  options.apart = true;
  return options;
}

// Logical devices stand in for GPUs that a host may not have.
std::vector<std::string> all_devices() {
  if (test::on_gpus()) return {test::devices(), "cuda:0*2", "cuda:0*3"};
  return {"cpu:2", "cpu:3", "cpu:1*4"};
}

TEST(Apart, devices_have_every_operation) {
  for (auto const& devices : all_devices()) {
    SCOPED_TRACE(devices);
    World world(apart(3, devices));
    test::try_everything(world);
    EXPECT_EQ(test::wrong_blocks(world, 3), 0u);
  }
}

struct WaitForNext {  // after a message each, so that something was under way
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + self.size() / 2) % self.size()};
    self.notify(window, next, Tag{3});
    self.wait(window, Tag{3});
    self.wait(window, Tag{3}, 1, next);
  }
};

TEST(Apart, ranks_that_all_wait_are_found_deadlocked_and_named) {
  World world(apart(1, all_devices()[1]));
  auto const window = world.window<u32>(1, Tags{4}, "inbox");
  for (int run = 0; run < 3; ++run)
    EXPECT_TRUE(says(error_of([&] { world.run(WaitForNext{window}); }), Kind::deadlock,
                     {"every rank that has not ended waits", "rank 0", "'inbox'", "tag 3"}));
  test::try_everything(world);
}

TEST(Apart, devices_reach_memory_of_the_user) {
  for (auto const& devices : all_devices()) {
    SCOPED_TRACE(devices);
    World world(apart(3, devices));
    test::UserMemory memory(world);
    test::try_everything(world, memory);
    EXPECT_EQ(test::wrong_blocks(world, 3, memory), 0u);
  }
}

TEST(ApartCpuOnly, devices_refuse_to_check_delivery) {
  auto options = apart(1, "cpu:2");
  options.check_delivery = true;
  EXPECT_TRUE(says(error_of([&] { World const world(options); }), Kind::bad_argument,
                   {"delivery", "MESHPOST_REACH"}));
  options.devices = "cpu:1";  // whose ranks reach each other
  World const world(options);
}

TEST(GpusAndCpuDevices, of_one_process_have_every_operation) {
  if (!test::on_gpus()) GTEST_SKIP() << "needs a GPU";
  for (auto const* const devices : {"cuda:0,cpu:1", "cpu:2,cuda:0*2"}) {
    SCOPED_TRACE(devices);
    World world(test::options(2, devices));
    test::try_everything(world);
    EXPECT_EQ(test::wrong_blocks(world, 3), 0u);
    auto const window = world.window<u32>(1, Tags{4}, "inbox");
    EXPECT_TRUE(says(error_of([&] { world.run(WaitForNext{window}); }), Kind::deadlock,
                     {"every rank that has not ended waits", "'inbox'", "cycle: rank 0 -> rank"}));
    test::try_everything(world);
  }
}

}  // namespace
}  // namespace meshpost
