#include "meshpost/trace/timeline.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace meshpost {
namespace {

using nlohmann::json;

TraceEvent event(u64 begin, u64 end, Operation operation, char const* name = "") {
  TraceEvent one{begin, end, operation, Note::no_rank, 0, 0, 0, {}};
  std::strcpy(one.name, name);
  return one;
}

TEST(Operations, have_a_name_each) {
  std::set<std::string_view> names;
  for (u32 i = 0; i < static_cast<u32>(Operation::count); ++i)
    names.insert(to_string(static_cast<Operation>(i)));
  EXPECT_EQ(names.size(), static_cast<u32>(Operation::count));
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(to_string(Operation::kernel), "kernel");
  EXPECT_EQ(to_string(Operation::put_notify), "put_notify");
  EXPECT_EQ(to_string(Operation::all_gather), "all_gather");
}

TEST(Perfetto, has_a_process_for_each_device_and_a_thread_for_each_rank) {
  Timeline timeline{"Kernel<int>", {"cpu:0", "cpu:1"}, 1000, 21000, {}};
  timeline.rows.push_back({0, 0, {}, 0});
  timeline.rows.push_back({1, 1, {}, 3});
  auto const whole = json::parse(to_perfetto(timeline));
  std::set<std::string> names;
  for (auto const& one : whole["traceEvents"]) {
    EXPECT_EQ(one["ph"], "M");
    names.insert(one["args"]["name"]);
  }
  EXPECT_EQ(names, (std::set<std::string>{"cpu:0", "cpu:1", "rank 0", "rank 1"}));
  EXPECT_EQ(whole["otherData"]["kernel"], "Kernel<int>");
  EXPECT_EQ(whole["otherData"]["lost_events"], 3);
  EXPECT_DOUBLE_EQ(whole["otherData"]["seconds"], 20e-6);
}

TEST(Perfetto, shows_operations_in_us_with_compute_between_them) {
  Timeline timeline{"k", {"cpu:0"}, 1000, 21000, {}};
  auto put = event(3000, 4000, Operation::put_notify);
  put.peer = 2, put.bytes = 64, put.window = 5, put.tag = 7;
  timeline.rows.push_back(
      {0,
       0,
       {put, event(5000, 5000, Operation::mark, "here"), event(6000, 0, Operation::wait)},
       0});
  std::vector<json> slices, marks;
  auto const whole = json::parse(to_perfetto(timeline));
  for (auto const& one : whole["traceEvents"]) {
    if (one["ph"] == "X") slices.push_back(one);
    if (one["ph"] == "i") marks.push_back(one);
  }
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[0]["name"], "compute");
  EXPECT_DOUBLE_EQ(slices[0]["ts"], 0);
  EXPECT_DOUBLE_EQ(slices[0]["dur"], 2);
  EXPECT_EQ(slices[1]["name"], "put_notify");
  EXPECT_DOUBLE_EQ(slices[1]["ts"], 2);
  EXPECT_DOUBLE_EQ(slices[1]["dur"], 1);
  EXPECT_EQ(slices[1]["args"], (json{{"peer", 2}, {"bytes", 64}, {"window", 5}, {"tag", 7}}));
  EXPECT_EQ(slices[2]["name"], "compute");
  EXPECT_DOUBLE_EQ(slices[2]["dur"], 2);
  EXPECT_EQ(slices[3]["name"], "wait");
  EXPECT_DOUBLE_EQ(slices[3]["dur"], 15) << "it never ended: to the end of the run";
  EXPECT_EQ(slices[3]["args"]["ended"], false);
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks[0]["name"], "here");
  EXPECT_DOUBLE_EQ(marks[0]["ts"], 4);
}

TEST(Perfetto, shows_compute_only_while_the_rank_lived) {
  Timeline timeline{"k", {"cpu:0"}, 1000, 21000, {}};
  timeline.rows.push_back(
      {0, 0, {event(4000, 11000, Operation::kernel), event(6000, 7000, Operation::notify)}, 0});
  std::vector<json> slices;
  auto const whole = json::parse(to_perfetto(timeline));
  for (auto const& one : whole["traceEvents"])
    if (one["ph"] == "X") slices.push_back(one);
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_DOUBLE_EQ(slices[0]["ts"], 3);
  EXPECT_DOUBLE_EQ(slices[0]["dur"], 2);
  EXPECT_EQ(slices[1]["name"], "notify");
  EXPECT_EQ(slices[2]["name"], "compute");
  EXPECT_DOUBLE_EQ(slices[2]["ts"], 6);
  EXPECT_DOUBLE_EQ(slices[2]["dur"], 4);
}

TEST(Perfetto, shows_within_a_wait_when_a_rank_was_ready_without_a_core) {
  Timeline timeline{"k", {"cpu:0"}, 1000, 21000, {}, 2};
  timeline.rows.push_back(
      {0,
       0,
       {event(3000, 19000, Operation::kernel), event(5000, 11000, Operation::wait)},
       0,
       {{1000, 2000, 6000}, {8000, 10000, 20000}, {20000, 20100, 21000}}});
  auto const whole = json::parse(to_perfetto(timeline));
  std::vector<std::pair<double, double>> ready;
  for (auto const& one : whole["traceEvents"])
    if (one["ph"] == "X" && one["cat"] == "ready") ready.emplace_back(one["ts"], one["dur"]);
  // At the start, and from the end of waiting to the core. A turn of the scheduler does not count.
  EXPECT_EQ(ready, (std::vector<std::pair<double, double>>{{0, 1}, {7, 2}}));
  EXPECT_EQ(whole["otherData"]["cores"], 2);
  EXPECT_DOUBLE_EQ(whole["otherData"]["cores_in_use"], (4 + 10 + 0.9) / (2 * 20));
}

TEST(Perfetto, says_nothing_of_cores_that_it_does_not_know) {
  Timeline timeline{"k", {"cuda:0"}, 1000, 21000, {}, 0};
  timeline.rows.push_back({0, 0, {event(3000, 19000, Operation::kernel)}, 0, {}});
  EXPECT_EQ(cores_in_use(timeline), std::nullopt);
  EXPECT_FALSE(json::parse(to_perfetto(timeline))["otherData"].contains("cores"));
}

TEST(Perfetto, is_valid_whatever_a_mark_is_called) {
  Timeline timeline{"a\"b\\<\n>", {"cpu:0"}, 0, 10, {}};
  timeline.rows.push_back({0, 0, {event(1, 1, Operation::mark, "\"\\\n\xff\xc3")}, 0});
  std::string text;
  ASSERT_NO_THROW(text = to_perfetto(timeline));
  EXPECT_NO_THROW(json::parse(text));
}

}  // namespace
}  // namespace meshpost
