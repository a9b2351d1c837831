// Timelines of a World: written after its runs, in memory that runs use alternately.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/host_hooks.hpp"
#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;

struct Marks {
  u32 count;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 i = 0; i < count; ++i) self.mark("here");
  }
};

struct MarksThenFails {
  MESHPOST_FN void operator()(Rank& self) const {
    self.mark("here");
    self.barrier();
    if (self.id() == 0) self.fail("on purpose");
  }
};

class WorldTimeline : public testing::Test {
 protected:
  ~WorldTimeline() override {
    hooks::install_host_hook(nullptr);
    std::filesystem::remove(file);
  }
  WorldOptions options() const {
    auto wanted = test::options(2);
    wanted.trace = file;
    return wanted;
  }
  nlohmann::json read() const {
    std::ifstream in(file);
    return in ? nlohmann::json::parse(in) : nlohmann::json{};
  }
  // Marks of each rank: their number if it is the same for all, else ~0.
  u32 marks() const {
    std::map<u32, u32> of_rank;
    auto const json = read();
    if (json.is_null()) return 0;
    for (auto const& event : json["traceEvents"]) {
      if (event["name"] == "thread_name") of_rank[event["tid"]] += 0;
      if (event["name"] == "here") ++of_rank[event["tid"]];
    }
    for (auto const& [rank, count] : of_rank)
      if (count != of_rank.begin()->second) return ~0u;
    return of_rank.empty() ? 0 : of_rank.begin()->second;
  }
  std::string const file = testing::TempDir() + "world" + std::to_string(getpid()) + ".json";
};

TEST_F(WorldTimeline, is_the_last_runs_when_the_world_is_gone) {
  for (u32 const last : {1u, 2u, 3u, 40u}) {
    {
      World world(options());
      for (u32 i = 1; i < last; ++i) world.run(Marks{50 - i});
      world.run(Marks{last});
    }
    EXPECT_EQ(marks(), last);
  }
}

TEST_F(WorldTimeline, of_runs_that_nobody_waits_for_one_by_one_is_the_last_ones) {
  {
    World world(options());
    std::vector<meshpost::Run> runs;  // not testing::Test::Run
    for (u32 i = 20; i > 0; --i) runs.push_back(world.launch(Marks{i}));
    runs.back().wait();
  }
  EXPECT_EQ(marks(), 1u);
}

TEST_F(WorldTimeline, comes_soon_while_the_world_lives) {
  World world(options());
  for (u32 const count : {3u, 5u}) {
    world.run(Marks{count});
    for (auto const end = std::chrono::steady_clock::now() + 20s;
         marks() != count && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(marks(), count);
  }
}

TEST_F(WorldTimeline, of_a_run_that_fails_is_there_when_it_is_told) {
  test::Listener const listener;
  World world(options());
  world.run(Marks{7});
  EXPECT_TRUE(test::says(test::error_of([&] { world.run(MarksThenFails{}); }), Kind::kernel_failed,
                         {"on purpose"}));
  EXPECT_EQ(marks(), 1u);
}

TEST_F(WorldTimeline, gives_way_to_a_launchs_of_the_same_file) {
  World world(options());
  for (u32 i = 1; i < 10; ++i) {
    world.run(Marks{i});
    world.run(Marks{i + 20}, {.trace = file});
    EXPECT_EQ(marks(), i + 20);
  }
}

TEST_F(WorldTimeline, needs_memory_for_one_run_only) {
  u32 pieces = 0;
  hooks::install_host_hook([&](std::string_view place) {
    if (place == "make memory for a timeline" && ++pieces > 1) throw std::bad_alloc();
  });
  {
    World world(options());
    for (u32 i = 1; i <= 20; ++i) world.run(Marks{i});
  }
  EXPECT_EQ(marks(), 20u);
  EXPECT_EQ(pieces, 2u);  // it is not tried again
}

TEST_F(WorldTimeline, without_memory_ends_the_run_that_needs_it) {
  hooks::install_host_hook([&](std::string_view place) {
    if (place == "make memory for a timeline") throw std::bad_alloc();
  });
  World world(options());
  EXPECT_THROW(world.run(Marks{1}), Error);
  hooks::install_host_hook(nullptr);
  world.run(Marks{4});
  world.run(Marks{4}, {.trace = file});
  EXPECT_EQ(marks(), 4u);
}

TEST_F(WorldTimeline, of_two_worlds_in_one_file_is_the_later_runs) {
  {
    World one(options()), other(options());
    for (u32 i = 1; i <= 10; ++i) one.run(Marks{i}), other.run(Marks{20 + i});
    one.run(Marks{15});
  }
  EXPECT_EQ(marks(), 15u);
}

}  // namespace
}  // namespace meshpost
