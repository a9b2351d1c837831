// Hosts that write to and read from windows of ranks on other nodes: by the connections of the
// bootstrap and, while both processes are awake, by the network engine.
#include <meshpost/meshpost.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/host_hooks.hpp"
#include "support/bytes.hpp"
#include "support/job.hpp"

namespace meshpost::far_hosts {
namespace {

using namespace std::chrono_literals;
using test::require;
using test::Role;
using test::say;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// Bytes of a thread's part: many pieces of a message. Sanitizers look at each byte many times.
constexpr u64 most = u64{test::sanitized ? 1 : 3} << 20;

// Writes of random sizes, and pauses that let threads fall asleep or not.
void write_and_read(World& world, Window<char> const& box, u64 begin, u64 seed) {
  std::mt19937_64 random(seed);
  RankId const other{(world.process() + 1) % world.processes()};
  for (int i = 0; i < 60; ++i) {
    u64 const size = random() % (i % 10 == 0 ? most : 4096) + 1;
    auto const mine = test::random_data<std::vector<char>>(random, size);
    box.write(other, begin, std::span<char const>(mine));
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    std::vector<char> got(size, '?');
    box.read(other, begin, std::span(got));
    require(got == mine, "what this thread has written");
    box.notify(other, Tag{0});
  }
}
struct Consume {
  Window<char> box;
  u32 count;
  MESHPOST_FN void operator()(Rank& self) const { self.wait(box, Tag{0}, count); }
};

Role const writing("far_hosts_write", [] {
  u64 const seed = std::random_device{}();
  say("seed " + std::to_string(seed));
  World world(test::world_options());
  auto const box = world.window<char>(2 * most, Tags{1}, "box");
  std::thread beside([&] { write_and_read(world, box, most, seed + 1); });
  write_and_read(world, box, 0, seed);
  beside.join();
  require(world.run(Consume{box, 120}).unconsumed.empty(), "each notification came once");
});

// Writes 1, 2, ... until it fails. No read may find anything but the last.
Role const until_lost("far_hosts_until_lost", [] {
  World world(test::world_options());
  auto const box = world.window<u32>(1, Tags{1}, "box");
  say("begins");
  if (world.process() == 1) std::this_thread::sleep_for(1min);
  test::print_error([&] {
    for (u32 i = 1;; ++i) {
      if (i == 1000) say("writes");
      box.write(RankId{1}, 0, std::span<u32 const>(&i, 1));
      require(box.read(RankId{1})[0] == i, "the last value");
    }
  });
});

Role const for_a_while("far_hosts_for_a_while", [] {
  World world(test::world_options());
  auto const box = world.window<u32>(1, Tags{1}, "box");
  try {
    for (u32 i = 1; world.process() == 0 && i < 1000; ++i) {
      box.write(RankId{1}, 0, std::span<u32 const>(&i, 1));
      require(box.read(RankId{1})[0] == i, "the last value");
    }
    std::printf("all is well\n");
  } catch (Error const& error) {
    std::printf("error: %s\n", error.what());
  }
});

Role const leaving("far_hosts_leave", [] {
  try {
    World world(test::world_options());
    auto const box = world.window<u32>(1, Tags{1}, "box");
    say("begins");
    if (world.process() == 1) {
      std::this_thread::sleep_for(200ms);  // the other writes
      throw std::runtime_error("it is enough");
    }
    test::print_error([&] {
      for (u32 i = 1;; ++i) box.write(RankId{1}, 0, std::span<u32 const>(&i, 1));
    });
    throw std::runtime_error("for both");  // no World is ended together any more
  } catch (std::runtime_error const&) {
    say("left");
    std::this_thread::sleep_for(test::timeout_factor * 500ms);
  }
});

Role const failing("far_hosts_fail", [] {
  World world(test::world_options());
  auto const box = world.window<u32>(1, Tags{1}, "box");
  std::atomic<u32> asked = 0;
  if (world.process() == 1)
    hooks::install_host_hook([&](std::string_view place) {
      // Both by the bootstrap's connections, and by the engine.
      if (place == "answer another process" && ++asked % 50 == 1)
        throw Error(Kind::device_failed, "write", "the device is broken", "see its log");
    });
  u32 failures = 0;
  for (u32 i = 0; world.process() == 0 && i < 200; ++i) try {
      box.write(RankId{1}, 0, std::span<u32 const>(&i, 1));
    } catch (Error const& error) {
      ++failures;
      std::printf("error: %s\n", error.what());
    }
  require(failures == (world.process() == 0 ? 4 : 0), "every fiftieth has failed");
  world.run(Consume{world.window<char>(1, Tags{1}, "next"), 0});
  hooks::install_host_hook(nullptr);
});

// A process is there, but the thread that answers is held up, as by a copy to a GPU.
Role const stuck("far_hosts_stuck", [] {
  std::atomic<u32> asked = 0;  // outlives the thread that counts
  World world(test::world_options());
  auto const box = world.window<u32>(1, Tags{1}, "box");
  if (world.process() == 1)
    hooks::install_host_hook([&](std::string_view place) {
      if (place == "answer another process" && ++asked == 20) std::this_thread::sleep_for(4s);
    });
  else
    for (int i = 0; i < 2; ++i)  // the first call hangs, the second is not begun
      test::print_error([&] {
        for (u32 k = 0;; ++k) box.write(RankId{1}, 0, std::span<u32 const>(&k, 1));
      });
});

test::Variables node(u32 process) { return {{"MESHPOST_NODE", std::to_string(process)}}; }

class JobFarHostsCpuOnly : public testing::Test {
  void SetUp() override {
    if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  }
};

TEST_F(JobFarHostsCpuOnly, write_read_and_notify_after_any_pause) {
  for (char const* const net : {"", "shuffled:7:ofi:tcp"}) {
    test::Job job("far_hosts_write", 2, {{"MESHPOST_RANKS", "1"}, {"MESHPOST_NET", net}}, node);
    test::expect_well(job.wait());
  }
}

TEST_F(JobFarHostsCpuOnly, hear_that_the_other_was_killed) {
  test::Job job("far_hosts_until_lost", 2, {{"MESHPOST_RANKS", "1"}}, node);
  job.wait_for(0, "writes");
  job.kill(1);
  auto const& writer = job.wait(10s)[0];
  EXPECT_TRUE(writer.well()) << writer.out;
  EXPECT_THAT(writer.out,
              AllOf(HasSubstr("process 1 ("), HasSubstr("is gone: its connection ended"),
                    HasSubstr("[peer lost]")));
}

TEST_F(JobFarHostsCpuOnly, wait_for_one_that_is_stopped_for_its_deadline) {
  test::Job job("far_hosts_until_lost", 2,
                {{"MESHPOST_RANKS", "1"}, {"MESHPOST_PEER_DEADLINE", "2"}}, node);
  job.wait_for(0, "writes");
  job.kill(1, SIGSTOP);
  std::this_thread::sleep_for(500ms);  // goes on
  job.kill(1, SIGCONT);
  std::this_thread::sleep_for(500ms);
  job.kill(1, SIGSTOP);
  job.wait_for(0, "error: ");
  job.kill(1);
  auto const& writer = job.wait(10s)[0];
  EXPECT_TRUE(writer.well()) << writer.out;
  EXPECT_GT(writer.seconds, 0);
  EXPECT_THAT(writer.out, AllOf(HasSubstr("process 1 ("), HasSubstr("no sign of life for 2 s"),
                                HasSubstr("[peer lost]")));
}

// The output of process 0 when all is over.
std::string out_of(char const* role, test::Variables variables = {}) {
  variables["MESHPOST_RANKS"] = "1";
  test::Job job(role, 2, variables, node);
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_LT(all[0].seconds, 10 * test::timeout_factor);
  return all[0].out;
}

TEST_F(JobFarHostsCpuOnly, hear_that_the_other_has_left_its_world) {
  EXPECT_THAT(out_of("far_hosts_leave"),
              AllOf(HasSubstr("process 1 ("), HasSubstr("has destroyed this World"),
                    HasSubstr("[peer lost]")));
}

TEST_F(JobFarHostsCpuOnly, wait_no_longer_for_one_that_does_not_answer) {
  auto const out = out_of("far_hosts_stuck", {{"MESHPOST_PEER_DEADLINE", "1"}});
  std::string const error = "is there, but its World has not answered for 2 s";
  test::expect_in_order(out, {"error: write: process 1 (", error, "[peer lost]",
                              "error: write: process 1 (", error, "[peer lost]"});
}

TEST_F(JobFarHostsCpuOnly, hear_of_errors_there_and_go_on) {
  EXPECT_THAT(out_of("far_hosts_fail"),
              AllOf(HasSubstr("in process 1 ("), HasSubstr("the device is broken"),
                    HasSubstr("[device failed]")));
}

// Most often the fault hits a message of this World's hosts. Otherwise nothing is wrong.
TEST_F(JobFarHostsCpuOnly, read_the_truth_or_hear_of_an_error_where_messages_go_wrong) {
  u64 const seed = std::random_device{}() % 1'000'000;
  for (char const* const fault : {"flip", "truncate", "duplicate", "drop", "lose"}) {
    SCOPED_TRACE(testing::Message() << fault << " seed " << seed);
    test::Job job("far_hosts_for_a_while", 2,
                  {{"MESHPOST_RANKS", "1"}, {"MESHPOST_PEER_DEADLINE", "1"}}, [&](u32 process) {
                    auto own = node(process);
                    own["MESHPOST_NET"] = process == seed % 2
                                              ? std::string("faulty:") + fault + ":" +
                                                    std::to_string(seed) + ":ofi:tcp"
                                              : "ofi:tcp";
                    return own;
                  });
    auto const& all = job.wait();
    test::expect_well(all);
    EXPECT_THAT(all[0].out,
                AnyOf(HasSubstr("all is well"), AllOf(HasSubstr("nothing comes from process 1 ("),
                                                      HasSubstr("[peer lost]"))));
    EXPECT_LT(all[0].seconds, 10);
  }
}

}  // namespace
}  // namespace meshpost::far_hosts
