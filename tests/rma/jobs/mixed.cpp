// Processes whose own devices can't reach each other's memory, beside some that can.
#include "support/boxed.hpp"
#include "support/everything.hpp"
#include "support/job.hpp"

namespace meshpost {
namespace {

using test::require;
using test::Role;
using test::try_everything;

// Devices of two kinds reach each other through the host alone, in one process or several.
Role const mixed("mixed", [] {
  test::register_boxed();
  World world(WorldOptions{});
  try_everything(world);
  require(test::wrong_blocks(world, 2) == 0, "blocks");
  u64 const mine = world.process();
  auto const window = world.window<u64>(world.processes(), Tags{0});
  for (u32 r = 0; r < world.size(); ++r)
    window.write(RankId{r}, mine, std::span<u64 const>(&mine, 1));
  world.window<int>(1);  // when it is there, all have written
  for (u32 r = 0; r < world.size(); ++r)
    for (u64 p = 0; p < world.processes(); ++p)
      require(window.read(RankId{r})[p] == p, "what each process wrote");
});

void run_mixed(std::vector<test::Variables> const& own) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("mixed", static_cast<u32>(own.size()), {{"MESHPOST_RANKS", "2"}},
                [&](u32 process) { return own[process]; });
  test::expect_well(job.wait());
}

TEST(Job, may_have_gpus_and_cpu_devices) {
  if (!test::on_gpus()) GTEST_SKIP() << "needs a GPU";
  run_mixed({{{"MESHPOST_DEVICES", "cuda:0"}},
             {{"MESHPOST_DEVICES", "cpu:2"}},
             {{"MESHPOST_DEVICES", "cuda:0,cpu:1"}}});
}

TEST(JobCpuOnly, may_have_devices_of_two_kinds_in_each_process) {
  run_mixed({{{"MESHPOST_DEVICES", "boxed:0,cpu:1"}},
             {{"MESHPOST_DEVICES", "cpu:1,boxed:0"}},
             {{"MESHPOST_DEVICES", "none"}},
             {{"MESHPOST_DEVICES", "cpu:1"}}});
}

TEST(JobCpuOnly, may_keep_the_devices_of_some_processes_apart) {
  run_mixed({{{"MESHPOST_DEVICES", "cpu:2"}, {"MESHPOST_REACH", "device"}},
             {{"MESHPOST_DEVICES", "cpu:2"}},
             {{"MESHPOST_DEVICES", "cpu:1"}}});
}

}  // namespace
}  // namespace meshpost
