// Output of ranks for people: log lines, timers, the timeline.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

struct Lines {
  u32 lines;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 i = 0; i < lines; ++i) self.log("line {} of {}", i, self.id());
  }
};

struct EveryType {
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0) return;
    self.log("plain");
    self.log("{} {} {} {}", -3, 4u, i64{-5'000'000'000}, ~u64{0});
    self.log("{:.3f} {} {}", 1.5f, true, 'x');
    self.log("{:>4}|{:04x}", RankId{7}, 255u);
    self.log("{} {}", 1);  // too few: as it is
  }
};

struct LogThenWait {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    self.log("rank {} is about to wait", self.id());
    self.wait(window, Tag{0});
  }
};

struct LogThenCompute {
  u64 nanoseconds;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.log("begun");
    u64 const begin = self.now();
    while (self.thread() == 0 && self.now() - begin < nanoseconds) {
    }
    self.sync();
    if (self.id() == 0) self.log("ended");
  }
};

struct Timed {
  u32 intervals;
  u64 nanoseconds;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 i = 0; i < intervals; ++i) {
      self.start_timer();
      u64 const begin = self.now();
      while (self.thread() == 0 && self.now() - begin < (i + 1) * nanoseconds) {
      }
      self.stop_timer();
      self.barrier();
    }
  }
};

struct NeverStopped {
  MESHPOST_FN void operator()(Rank& self) const {
    self.start_timer();
    self.start_timer();
    self.stop_timer();
  }
};

struct Marked {
  Window<u32> window;
  u32 rounds;
  MESHPOST_FN void operator()(Rank& self) const {
    self.mark("begin of the exchange, which is a long name");
    for (u32 i = 0; i < rounds; ++i) {
      self.put_notify(window.at(RankId{(self.id() + 1) % self.size()}),
                      window.local(self).subspan(1, 1), Tag{2});
      self.wait(window, Tag{2});
    }
    self.barrier();
  }
};

TEST(Log, keeps_every_line_and_the_order_of_each_rank) {
  test::Listener const listener;
  World world(test::options(3));
  u32 const lines = 3 * LogRing::capacity;  // of each rank
  world.run(Lines{lines});
  std::map<unsigned, u32> next;
  u64 wrong = 0;
  for (auto const& [rank, text] : listener.lines()) {
    wrong += text != "line " + std::to_string(next[rank]) + " of " + std::to_string(rank);
    ++next[rank];
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(next.size(), world.size());
  for (auto const& [rank, count] : next) EXPECT_EQ(count, lines) << "of rank " << rank;
}

TEST(Log, of_one_run_after_the_other_is_complete_and_not_repeated) {
  test::Listener const listener;
  World world(test::options(1, test::devices(test::Spread::one_device)));
  std::size_t sent = 0;
  for (u32 const lines : {3u, 1u, 0u, 1500u, 2u, 1024u, 1u}) {
    world.run(Lines{lines});
    sent += lines;
    ASSERT_EQ(listener.lines().size(), sent);
    if (lines == 0) continue;
    EXPECT_EQ(listener.lines().back().second, "line " + std::to_string(lines - 1) + " of 0");
  }
}

TEST(Log, takes_numbers_of_every_type_in_the_formats_of_fmt) {
  test::Listener const listener;
  World world(test::options(1));
  world.run(EveryType{});
  std::vector<std::string> texts;
  for (auto const& line : listener.lines()) texts.push_back(line.second);
  EXPECT_EQ(texts, (std::vector<std::string>{"plain", "-3 4 -5000000000 18446744073709551615",
                                             "1.500 true x", "   7|00ff", "{} {} 1"}));
}

TEST(Log, is_kept_when_the_run_deadlocks_and_after_it) {
  test::Listener const listener;
  World world(test::options(2));
  auto const window = world.window<u32>(1);
  for (u32 i = 1; i <= 3; ++i) {
    EXPECT_TRUE(says(error_of([&] { world.run(LogThenWait{window}); }), Kind::deadlock, {"tag 0"}));
    EXPECT_EQ(listener.lines().size(), (2 * i - 1) * world.size());
    world.run(Lines{1});
    EXPECT_EQ(listener.lines().size(), 2 * i * world.size());
  }
}

TEST(Log, is_printed_while_the_kernel_runs) {
  test::Listener const listener;
  World world(test::options(1));
  auto run = world.launch(LogThenCompute{test::timeout_factor * u64{250'000'000}});
  auto const begin = std::chrono::steady_clock::now();
  while (listener.lines().empty() && std::chrono::steady_clock::now() - begin < 10s)
    std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(run.done());
  run.wait();
  EXPECT_EQ(listener.lines().size(), 2u);
}

TEST(Timers, report_each_interval_of_each_device) {
  World world(test::options(2));
  for (int i = 0; i < 2; ++i) {
    auto const result = world.run(Timed{3, 5'000'000});
    ASSERT_EQ(result.timings.size(), world.device_count());
    for (auto const& timings : result.timings) {
      ASSERT_EQ(timings.size(), 3u);
      for (u32 k = 0; k < 3; ++k) {
        EXPECT_GE(timings[k], 0.0049 * (k + 1));
        EXPECT_LT(timings[k], result.seconds);
      }
    }
  }
}

TEST(Timers, that_were_not_stopped_are_not_reported_nor_left_for_the_next_run) {
  World world(test::options(1));
  EXPECT_TRUE(world.run(NeverStopped{}).timings[0].empty());
  for (auto const& timings : world.run(Lines{0}).timings) EXPECT_TRUE(timings.empty());
  EXPECT_EQ(world.run(Timed{1, 1000}).timings[0].size(), 1u);
}

class TimelineFile : public testing::Test {
 protected:
  ~TimelineFile() override { std::filesystem::remove(file); }
  nlohmann::json read() const {
    std::ifstream in(file);
    return nlohmann::json::parse(in);
  }
  std::string file = testing::TempDir() + "timeline" + std::to_string(getpid()) + ".json";
};

TEST_F(TimelineFile, shows_operations_of_every_rank_within_the_run) {
  World world(test::options(2));
  auto const window = world.window<u32>(2, Tags{4}, "inbox");
  auto const result = world.run(Marked{window, 5}, {.trace = file});
  auto const json = read();
  std::map<std::string, u32> names;
  for (auto const& event : json["traceEvents"]) {
    if (event["ph"] == "M") continue;
    ++names[event["name"]];
    double const at = event["ts"], length = event.value("dur", 0.0);
    EXPECT_GE(at, 0);
    EXPECT_LE(at + length,
              result.seconds * 1e6 + 50);  // a GPU's clock is known within microseconds
  }
  u32 const n = world.size();
  EXPECT_EQ(names["put_notify"], 5 * n);
  EXPECT_EQ(names["wait"], 5 * n);
  EXPECT_EQ(names["barrier"], n);
  EXPECT_EQ(names["begin of the exchange, "], n);  // 23 characters
}

struct ComputeInSizedWindow {  // of a window whose parts differ: accesses are calls
  Window<int> window;
  u64 turn_ns;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 round = 0; round < 3; ++round) {
      for (u64 const begin = memory::clock_ns(); memory::clock_ns() - begin < turn_ns;) continue;
      auto const mine = window.local(self);
      if (self.thread() == 0) mine[0] = 1;
      self.notify(window, self.id(), Tag{0});
      self.wait(window, Tag{0});
    }
  }
};

TEST_F(TimelineFile, shows_what_a_rank_computes_whatever_windows_it_looks_at) {
  constexpr u64 turn_ns = 300'000;
  World world(test::options(1, test::devices(test::Spread::one_device)));
  std::vector<Extent> const parts(world.size(), Extent{0, 2});
  auto const window = world.window<int>(parts, Tags{1});
  world.run(ComputeInSizedWindow{window, turn_ns}, {.trace = file});
  double computed = 0;
  auto const json = read();
  for (auto const& event : json["traceEvents"])
    if (event["name"] == "compute") computed += event["dur"].get<double>();
  EXPECT_GE(computed, world.size() * 3 * turn_ns * 1e-3 * 0.999);
}

TEST_F(TimelineFile, is_written_when_the_run_fails_too) {
  test::Listener const listener;
  World world(test::options(2));
  auto const window = world.window<u32>(2);
  EXPECT_TRUE(
      says(error_of([&] { world.run(LogThenWait{window}, {.trace = file}); }), Kind::deadlock, {}));
  u32 unended = 0;
  auto const json = read();
  for (auto const& event : json["traceEvents"])
    unended += event["name"] == "wait" && event["args"].contains("ended");
  EXPECT_GE(unended, test::on_gpus() ? 1u : 0u);
}

TEST_F(TimelineFile, counts_the_events_that_it_has_no_room_for) {
  auto wanted = test::options(1, test::devices(test::Spread::one_device));
  wanted.trace = file;
  wanted.trace_events = 10;
  {
    World world(wanted);
    world.run(Marked{world.window<u32>(2), 50});
  }
  EXPECT_EQ(read()["otherData"]["lost_events"], 1 + 2 * 50 + 2 - 10);
}

TEST(Timeline, that_cannot_be_written_is_warned_of) {
  test::Listener const listener;
  World world(test::options(1));
  world.run(Lines{0}, {.trace = "/no/such/folder/t.json"});
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_NE(listener.warnings()[0].find("'/no/such/folder/t.json'"), std::string::npos);
}

}  // namespace
}  // namespace meshpost
