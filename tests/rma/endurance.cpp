// A World that runs many empty kernels needs no more memory or time after many runs.
// MESHPOST_TEST_RUNS is their number; a million take some 20 s on CPU devices.
#include <chrono>
#include <fstream>

#include "support/random_programs.hpp"

namespace meshpost {
namespace {

struct Idle {
  MESHPOST_FN void operator()(Rank&) const {}
};

// Resident memory of this process in KiB.
u64 resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      u64 size = 0;
      status >> size;
      return size;
    }
  return 0;
}

// Microseconds for each of so many runs. A hundred of them are launched, then waited for.
double queued(World& world, u64 count) {
  auto const begin = std::chrono::steady_clock::now();
  for (u64 done = 0; done < count; done += 100) {
    std::vector<Run> runs;
    runs.reserve(100);
    for (int i = 0; i < 100; ++i) runs.push_back(world.launch(Idle{}));
    for (auto& run : runs) run.wait();
  }
  std::chrono::duration<double, std::micro> const time = std::chrono::steady_clock::now() - begin;
  return time.count() / static_cast<double>(count);
}

double waited_for(World& world, u64 count) {
  auto const begin = std::chrono::steady_clock::now();
  for (u64 i = 0; i < count; ++i) world.run(Idle{});
  std::chrono::duration<double, std::micro> const time = std::chrono::steady_clock::now() - begin;
  return time.count() / static_cast<double>(count);
}

using Times = double (*)(World&, u64);

class EmptyRuns : public testing::TestWithParam<std::pair<char const*, Times>> {};
INSTANTIATE_TEST_SUITE_P(Each, EmptyRuns,
                         testing::Values(std::pair{"waited_for", Times{waited_for}},
                                         std::pair{"queued", Times{queued}}),
                         [](auto const& one) { return one.param.first; });

TEST_P(EmptyRuns, keep_memory_and_time) {
  if (test::sanitized) GTEST_SKIP() << "a sanitizer keeps what was freed";
  u64 const tenth = std::max<u64>(test::number("MESHPOST_TEST_RUNS", 2000) / 1000 * 100, 100);
  auto const times = GetParam().second;
  World world(test::options(2, test::devices(test::Spread::several_devices)));
  times(world, tenth);  // threads, stacks and caches are created
  u64 const before = resident();
  double const first = times(world, tenth);
  times(world, 8 * tenth);
  double const last = times(world, tenth);
  u64 const after = resident();
  std::printf(
      "%llu runs: %.1f us each of the first tenth, %.1f us of the last; %llu KiB, then %llu KiB\n",
      10 * tenth, first, last, before, after);
  EXPECT_LE(after, before + 1024);  // a megabyte: pages more here and there
  // Another program may take the cores for as long as a few thousand runs take.
  if (tenth >= 10'000) {
    EXPECT_LE(last, 2 * first);
  }
}

}  // namespace
}  // namespace meshpost
