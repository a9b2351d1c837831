// Cores in a timeline: when ranks had one, and when they were ready for one.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/worlds.hpp"

namespace meshpost {
namespace {

constexpr u64 turn_ns = 2'000'000;

struct LastWakesAll {  // they then compute, one after the other if there is one worker
  Window<u32> window;
  void operator()(Rank& self) const {
    u32 const last = self.size() - 1;
    if (self.id() == last) {
      for (u32 r = 0; r < last; ++r) self.notify(window, RankId{r}, Tag{0});
      return;
    }
    self.wait(window, Tag{0});
    for (u64 const begin = memory::clock_ns(); memory::clock_ns() - begin < turn_ns;) continue;
  }
};

class CoreSlices : public testing::Test {
 protected:
  ~CoreSlices() override { std::filesystem::remove(file); }
  nlohmann::json run(u32 ranks, u32 workers) const {
    auto options = test::options(ranks, "cpu:1");
    options.workers = workers;
    World world(options);
    world.run(LastWakesAll{world.window<u32>(1, Tags{1})}, {.trace = file});
    std::ifstream in(file);
    return nlohmann::json::parse(in);
  }
  std::string file = testing::TempDir() + "cores" + std::to_string(getpid()) + ".json";
};

TEST_F(CoreSlices, tell_ranks_that_are_ready_without_a_core_from_ranks_that_wait) {
  constexpr u32 ranks = 4;
  auto const json = run(ranks, 1);
  std::vector<double> longest(ranks);
  for (auto const& event : json["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "ready") {
      auto& known = longest[event["tid"].get<u32>()];
      known = std::max(known, event["dur"].get<double>());
    }
  // All except the last could go on at once. In any order, the second waited while one computed,
  // the third while two computed.
  std::ranges::sort(longest, std::greater{});
  EXPECT_GE(longest[0], turn_ns * 1e-3 * 2 * 0.999);
  EXPECT_GE(longest[1], turn_ns * 1e-3 * 0.999);
}

TEST_F(CoreSlices, give_the_share_of_the_cores_in_use) {
  auto const more = run(4, 1)["otherData"];
  EXPECT_EQ(more["cores"], 1);
  double const seconds = more["seconds"], share = more["cores_in_use"];
  EXPECT_GE(share * seconds, 3 * turn_ns * 1e-9 * 0.999);  // three ranks computed
  EXPECT_LE(share, 1.0);
}

}  // namespace
}  // namespace meshpost
