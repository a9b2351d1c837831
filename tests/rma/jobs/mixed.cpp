// Processes whose own devices can't reach each other's memory, beside processes whose devices can.
#include <cstdlib>
#include <string_view>

#include "support/boxed.hpp"
#include "support/everything.hpp"
#include "support/job.hpp"
#if defined(__CUDACC__)
#include <cuda.h>
#include <cuda_runtime_api.h>
#endif

namespace meshpost {
namespace {

using test::require;
using test::Role;
using test::try_everything;

// Devices of two kinds reach each other through the host alone, in one process or several. A
// process may lack a kind that only others use: they send it the kind's properties.
Role const mixed_devices("mixed", [] {
  char const* const devices = std::getenv("MESHPOST_DEVICES");
  if (devices && std::string_view(devices).find("boxed") != std::string_view::npos)
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

struct Fails {  // behind messages to all, while the others wait
  Window<int> window;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 to = 0; to < self.size(); ++to) self.notify(window, RankId{to}, Tag{0});
    self.wait(window, Tag{0}, self.size());
    if (self.id() == 0) self.fail("I will not");
    self.wait(window, Tag{1}, 1, RankId{0});
  }
};

Role const mixed_failure("mixed_failure", [] {
  test::register_boxed();
  World world(WorldOptions{});
  auto const window = world.window<int>(1, Tags{2}, "inbox");
  for (int run = 0; run < 3; ++run) {
    test::print_error([&] { world.run(Fails{window}); });
    try_everything(world);
  }
});

// Only one process has a proxy. The other ends the run, and begins the next, together with it.
TEST(JobCpuOnly, may_have_one_process_whose_devices_need_the_host_among_themselves) {
  test::Job job("mixed_failure", 2, {{"MESHPOST_RANKS", "2"}}, [](u32 process) -> test::Variables {
    return {{"MESHPOST_DEVICES", process == 0 ? "boxed:0,cpu:1" : "none"}};
  });
  auto const all = job.wait();
  test::expect_well(all);
  for (auto const& one : all) EXPECT_THAT(one.out, testing::HasSubstr("I will not"));
}

TEST(JobCpuOnly, may_keep_the_devices_of_some_processes_apart) {
  run_mixed({{{"MESHPOST_DEVICES", "cpu:2"}, {"MESHPOST_REACH", "device"}},
             {{"MESHPOST_DEVICES", "cpu:2"}},
             {{"MESHPOST_DEVICES", "cpu:1"}}});
}

#if defined(__CUDACC__)
bool is_started(int gpu) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, 12000, cudaEnableDefault,
                                   &result);
  require(found, "the driver's function");
  unsigned flags = 0;
  int active = 0;
  auto const ask = reinterpret_cast<CUresult (*)(CUdevice, unsigned*, int*)>(found);
  require(ask(gpu, &flags, &active) == CUDA_SUCCESS, "an answer");
  return active != 0;
}

Role const second_gpu("second_gpu", [] {
  {
    World world(WorldOptions{});
    try_everything(world);
    StreamEndpoint stream(world, 0);
    auto const box = world.window<u32>(1, Tags{1});
    stream.notify(box, stream.id(), Tag{0});
    stream.wait(box, Tag{0});
    stream.synchronize();
  }
  require(is_started(1), "the GPU in use");
  require(!is_started(0), "no other GPU");
});
#endif

// A start takes some 100 ms and memory of a GPU that others use.
TEST(Job, starts_no_gpu_that_a_process_does_not_use) {
#if defined(__CUDACC__)
  int gpus = 0;
  if (!test::on_gpus() || cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < 2)
    GTEST_SKIP() << "needs two GPUs";
  for (auto const* const reach : {"", "device"}) {
    test::Job job(
        "second_gpu", 2,
        {{"MESHPOST_DEVICES", "cuda:1"}, {"MESHPOST_RANKS", "2"}, {"MESHPOST_REACH", reach}});
    test::expect_well(job.wait());
  }
#else
  GTEST_SKIP() << "needs two GPUs";
#endif
}

}  // namespace
}  // namespace meshpost
