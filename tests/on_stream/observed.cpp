// Reports and timelines of what the host does between the operations of streams.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <source_location>

#include "on_stream/two_streams.hpp"
#include "support/errors.hpp"
#include "support/sink.hpp"

namespace meshpost::observed_tests {
namespace {

using nlohmann::json;
using test::Listener;

WorldOptions two_devices() {
  return test::options(1, test::devices(test::Spread::several_devices));
}
WorldOptions reporting() {
  auto wanted = two_devices();
  wanted.report_sync = true;
  return wanted;
}
std::string line(u32 number) { return "observed.cpp:" + std::to_string(number); }
u32 here(std::source_location where = std::source_location::current()) { return where.line(); }

std::vector<std::string> about(std::vector<std::string> const& warnings, std::string const& what) {
  std::vector<std::string> found;
  for (auto const& one : warnings)
    if (one.find("the host waited") != one.npos && one.find(what) != one.npos) found.push_back(one);
  return found;
}

struct Nothing {
  MESHPOST_FN void operator()(Rank& /*self*/) const {}
};

TEST(SyncReport, names_the_wait_and_the_operations_around_it_with_their_lines) {
  Listener const listener;
  u32 put = 0;
  {
    World world(reporting());
    auto const box = world.window<u32>(1, Tags{1}, "box");
    StreamEndpoint end(world, 0, "left");
    for (int step = 0; step < 3; ++step) {
      put = here(), end.notify(box, end.id(), Tag{0});
      end.synchronize();
      end.wait(box, Tag{0});
    }
  }
  auto const found = about(listener.warnings(), "for stream 'left' of ");
  ASSERT_EQ(found.size(), 1u) << "one place, three times";
  EXPECT_NE(found[0].find("between notify (" + line(put) + ") and wait (" + line(put + 2) +
                          "), at " + line(put + 1) + " (synchronize): 3 times, "),
            std::string::npos)
      << found[0];
}

TEST(SyncReport, has_the_lines_of_messages_and_of_posts_not_of_what_was_prepared) {
  Listener const listener;
  u32 sent = 0, posted = 0;
  {
    World world(reporting());
    MessageWindow const box(world, {.streams = 2});
    StreamEndpoint left(world, 0, "left"), right(world, 1, "right");
    auto& device = *world.devices()[1];
    auto const memory = device.allocate(Bytes{16}, MemoryKind::pinned);
    std::span<u32> const bytes(memory.as<u32>(), 4);
    auto request = right.prepare().receive(box, left.id(), bytes, Tag{0});
    sent = here(), left.send(box, right.id(), bytes, Tag{0});
    left.synchronize();
    posted = here(), request.post();
    right.synchronize();
    left.send(box, right.id(), bytes, Tag{0});
    right.receive(box, left.id(), bytes, Tag{0});
    left.synchronize();
    right.synchronize();  // before the memory goes
  }
  auto const all = about(listener.warnings(), "");
  ASSERT_EQ(all.size(), 2u);
  auto const says = [&](std::string const& what) { return about(all, what).size() == 1; };
  EXPECT_TRUE(says("between send (" + line(sent) + ") and receive (" + line(posted) + "), at " +
                   line(sent + 1) + " "));
  EXPECT_TRUE(says("between receive (" + line(posted) + ") and send (" + line(posted + 2) +
                   "), at " + line(posted + 1) + " "));
}

TEST(SyncReport, says_nothing_of_a_wait_behind_the_last_operation) {
  Listener const listener;
  {
    World world(reporting());
    auto const box = world.window<u32>(1, Tags{1}, "box");
    StreamEndpoint end(world);
    for (int step = 0; step < 3; ++step) {
      end.notify(box, end.id(), Tag{0});
      end.wait(box, Tag{0});
    }
    end.synchronize();
  }
  EXPECT_TRUE(about(listener.warnings(), "").empty());
}

TEST(SyncReport, says_nothing_unless_it_is_asked) {
  Listener const listener;
  {
    World world(two_devices());
    auto const box = world.window<u32>(1, Tags{1}, "box");
    StreamEndpoint end(world);
    end.notify(box, end.id(), Tag{0});
    end.synchronize();
    end.wait(box, Tag{0});
    end.synchronize();
  }
  EXPECT_TRUE(about(listener.warnings(), "").empty());
}

// Every public call that waits, each between two operations.
TEST(SyncReport, finds_every_kind_of_wait) {
  Listener const listener;
  std::vector<u32> lines;
  {
    World world(reporting());
    auto const box = world.window<u32>(4, Tags{1}, "box");
    StreamEndpoint end(world);
    std::vector<u32> host(4);
    auto const between = [&](auto const& wait) {
      end.notify(box, end.id(), Tag{0});
      wait();
      end.wait(box, Tag{0});
      end.stream().record()->wait();  // is not found
    };
    auto& device = *world.devices()[0];
    auto const memory = device.allocate(Bytes{16}, MemoryKind::device);
    between([&] { lines.push_back(here()), end.stream().synchronize(); });
    between([&] { lines.push_back(here()), box.read(RankId{0}); });
    between([&] { lines.push_back(here()), box.write(RankId{0}, 0, std::span<u32 const>(host)); });
    between([&] { lines.push_back(here()), device.read(host.data(), memory.data(), Bytes{16}); });
    between([&] { lines.push_back(here()), device.write(memory.data(), host.data(), Bytes{16}); });
    between([&] { lines.push_back(here()), device.fill(memory.data(), 0, Bytes{16}); });
    between([&] { lines.push_back(here()), world.run(Nothing{}); });
    between([&] { lines.push_back(here()), world.window<u32>(1); });
    between([&] { lines.push_back(here()), copy(host.data(), memory.data(), Bytes{16}); });
    auto run = world.launch(Nothing{});
    lines.push_back(here()), run.wait();
    end.notify(box, end.id(), Tag{0});
    end.wait(box, Tag{0});
    end.synchronize();
  }
  auto const warnings = listener.warnings();
  for (u32 const wanted : lines)
    EXPECT_EQ(about(warnings, ", at " + line(wanted) + " (").size(), 1u) << line(wanted);
  EXPECT_EQ(about(warnings, "").size(), lines.size());
}

struct HostTimeline : testing::Test {
  ~HostTimeline() override { std::filesystem::remove(file); }
  WorldOptions options() const {
    auto wanted = two_devices();
    wanted.trace_host = file;
    return wanted;
  }
  json read() const {
    std::ifstream in(file);
    return json::parse(in);
  }
  static std::vector<json> spans(json const& whole, std::string const& category) {
    std::vector<json> found;
    for (auto const& one : whole["traceEvents"])
      if (one["ph"] == "X" && one["cat"] == category) found.push_back(one);
    return found;
  }
  static double end(json const& span) {
    return span["ts"].get<double>() + span["dur"].get<double>();
  }
  std::string const file = testing::TempDir() + "host" + std::to_string(getpid()) + ".json";
};

TEST_F(HostTimeline, has_rows_for_the_host_for_streams_and_for_runs) {
  {
    World world(options());
    auto const box = world.window<u32>(1, Tags{1}, "box");
    StreamEndpoint left(world, 0, "left"), right(world, 1, "right");
    for (int step = 0; step < 3; ++step) {
      {
        auto const task = left.task("long");
        left.stream().fill(box.part(RankId{0}).data(), 7, Bytes{sizeof(u32)});
      }
      left.put_notify(box.at(RankId{1}), box.part(RankId{0}), right.id(), Tag{0});
      right.wait(box, Tag{0});
      right.synchronize();
    }
    world.run(Nothing{});
  }
  auto const whole = read();
  EXPECT_EQ(whole["otherData"], (json{{"host", 1}, {"lost_events", 0}}));
  auto const tasks = spans(whole, "task"), sends = spans(whole, "send"),
             waits = spans(whole, "wait"), launches = spans(whole, "launch"),
             syncs = spans(whole, "sync"), runs = spans(whole, "run");
  ASSERT_EQ(tasks.size(), 3u);
  ASSERT_EQ(sends.size(), 3u);
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(launches.size(), 4u) << "tasks and a run";
  EXPECT_EQ(syncs.size(), 4u);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_NE(runs[0]["name"].get<std::string>().find("Nothing"), std::string::npos);
  EXPECT_EQ(sends[0]["args"]["bytes"], sizeof(u32));
  double const slack = 20;  // us, of two clocks
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(tasks[step]["name"], "long");
    EXPECT_LE(end(tasks[step]), sends[step]["ts"].get<double>() + 1e-3);
    // A wait ends behind the send's counter, and before the host knows.
    EXPECT_GE(end(waits[step]) + slack, sends[step]["ts"].get<double>());
    EXPECT_LE(end(waits[step]), end(syncs[step]) + slack);
  }
}

TEST_F(HostTimeline, has_messages_with_their_bytes_and_posts_by_the_name_of_their_operation) {
  {
    World world(options());
    MessageWindow const box(world, {.streams = 2});
    StreamEndpoint left(world, 0, "left"), right(world, 1, "right");
    auto const memory = world.devices()[0]->allocate(Bytes{16}, MemoryKind::pinned);
    std::span<u32> const bytes(memory.as<u32>(), 4);
    left.prepare().send(box, right.id(), bytes, Tag{0}).post();
    right.receive(box, left.id(), bytes, Tag{0});
    right.synchronize();
  }
  auto const whole = read();
  auto const sends = spans(whole, "send"), waits = spans(whole, "wait"),
             queued = spans(whole, "queue");
  ASSERT_EQ(sends.size(), 1u);
  ASSERT_EQ(waits.size(), 1u);
  ASSERT_EQ(queued.size(), 2u);
  EXPECT_EQ(sends[0]["name"], "send");
  EXPECT_EQ(waits[0]["name"], "receive");
  EXPECT_EQ(sends[0]["args"]["bytes"], 16);
  EXPECT_EQ(queued[0]["name"], "send");
}

TEST_F(HostTimeline, counts_what_had_no_room) {
  {
    auto wanted = options();
    wanted.trace_events = 4;
    World world(wanted);
    auto const box = world.window<u32>(1, Tags{1}, "box");
    StreamEndpoint end(world);
    for (int i = 0; i < 5; ++i) {
      end.notify(box, end.id(), Tag{0});
      end.wait(box, Tag{0});
    }
  }
  auto const whole = read();
  // Ten operations of the stream, and their calls with that for the window.
  EXPECT_EQ(whole["otherData"]["lost_events"], 6 + 7);
  EXPECT_EQ(spans(whole, "send").size() + spans(whole, "wait").size(), 4u);
}

TEST_F(HostTimeline, of_an_endpoint_that_outlives_the_loop_is_whole_when_the_world_ends) {
  std::optional<StreamEndpoint> kept;
  {
    World world(options());
    auto const box = world.window<u32>(1, Tags{1}, "box");
    kept.emplace(world);
    kept->notify(box, kept->id(), Tag{0});
    kept->wait(box, Tag{0});
  }
  EXPECT_EQ(spans(read(), "send").size(), 1u);
  EXPECT_EQ(spans(read(), "wait").size(), 1u);
}

}  // namespace
}  // namespace meshpost::observed_tests
