// Several processes can do the same as one: each role runs in all processes of a job.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <random>
#include <thread>

#include "support/boxed.hpp"
#include "support/everything.hpp"
#include "support/job.hpp"
#include "support/strided.hpp"
#include "support/users.hpp"

namespace meshpost {
namespace {

using test::require;
using test::Role;
using test::try_everything;

struct Ring {
  Window<u64> inbox;
  u32 rounds;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const next = RankId{(self.id() + 1) % self.size()};
    auto const mine = inbox.local(self);
    for (u32 round = 0; round < rounds; ++round) {
      if (self.thread() == 0) mine[1] = u64{self.id()} * 1000 + round;
      self.put_notify(inbox.at(next, 0), mine.subspan(1, 1), Tag{1});
      self.wait(inbox, Tag{1});
      u64 const before = (self.id() + self.size() - 1) % self.size();
      if (mine[0] != before * 1000 + round) self.fail("the wrong number came");
      self.barrier();
    }
  }
};

Role const ring("ring", [] {
  World world(test::world_options());
  auto const inbox = world.window<u64>(2, Tags{4}, "inbox");
  for (int run = 0; run < 3; ++run) world.run(Ring{inbox, 50});
  for (u32 r = 0; r < world.size(); ++r)
    require(inbox.read(RankId{r})[0] == u64{(r + world.size() - 1) % world.size()} * 1000 + 49,
            "what a rank received");
});

TEST(Job, of_1_to_8_processes_passes_numbers_in_a_ring) {
  for (u32 const processes : {1, 2, 3, 8}) {
    test::Job job("ring", processes, {{"MESHPOST_RANKS", "3"}});
    test::expect_well(job.wait());
  }
}

TEST(Job, may_have_several_devices_a_process_and_processes_without) {
  test::Job job("ring", 4, {{"MESHPOST_RANKS", "2"}}, [](u32 process) -> test::Variables {
    char const* const devices[] = {"none", "cpu:3", "none", "cpu:1"};
    return {{"MESHPOST_DEVICES", devices[process]}};
  });
  test::expect_well(job.wait());
}

TEST(Job, may_have_logical_devices) {
  test::Job job("ring", 4, {{"MESHPOST_RANKS", "2"}}, [](u32 process) -> test::Variables {
    char const* const devices[] = {"cpu:1*3", "none", "cpu:2*2", "cpu:1"};
    return {{"MESHPOST_DEVICES", devices[process]}};
  });
  test::expect_well(job.wait());
}

TEST(Job, may_meet_by_a_file) {
  auto const path = testing::TempDir() + "meeting-" + std::to_string(getpid());
  test::Job job(
      "ring", 3,
      {{"MESHPOST_RANKS", "2"}, {"MESHPOST_RENDEZVOUS", "file:" + path}, {"MESHPOST_SECRET", ""}});
  test::expect_well(job.wait());
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "it is removed";
}

Role const everything("everything", [] {
  World world(test::world_options());
  try_everything(world);
});

TEST(Job, has_every_operation_between_all_ranks) {
  test::Job job("everything", 4, {{"MESHPOST_RANKS", "4"}});
  test::expect_well(job.wait());
}

Role const pieces("pieces", [] {
  World world(test::world_options());
  for (u64 seed = 1; seed < 4; ++seed) {
    require(test::send_pieces<u64>(world, seed) == 0, "pieces of words");
    require(test::send_pieces<u8>(world, seed) == 0, "pieces of bytes");
  }
});

TEST(Job, puts_strided_pieces) {
  test::Job job("pieces", 3, {{"MESHPOST_RANKS", "2"}});
  test::expect_well(job.wait());
}

struct Sum {
  Communicator pairs;
  Window<u32> out;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = out.local(self);
    if (self.thread() == 0) mine[0] = self.id();
    self.sync();
    self.all_reduce(pairs, mine.subspan(0, 1), meshpost::Sum{});
  }
};

Role const groups("groups", [] {
  World world(test::world_options());
  u32 const half = world.size() / 2;
  auto const pairs = world.split(world.communicator(), [=](RankId r) { return i64{r % half}; });
  std::vector<Extent> parts;  // of different sizes
  for (u32 r = 0; r < world.size(); ++r)
    parts.push_back({r % world.ranks_per_device() * 10, 1 + r});
  auto const out = world.window<u32>(parts, Tags{1}, "out");
  world.run(Sum{pairs, out});
  for (u32 r = 0; r < world.size(); ++r) {
    auto const part = out.read(RankId{r});
    require(part.size() == 1 + r, "a part's size");
    require(part[0] == r % half * 2 + half, "a pair's sum");
  }
});

TEST(Job, has_groups_and_parts_of_different_sizes) {
  test::Job job("groups", 3, {{"MESHPOST_RANKS", "4"}});
  test::expect_well(job.wait());
}

// Windows are made and freed, and the heap grows, while the host reads and writes the parts of all
// ranks.
Role const memory_role("memory", [] {
  World world(test::world_options());
  std::mt19937 random(7);  // the same everywhere
  std::vector<std::pair<Window<u64>, u64>> windows;
  for (int step = 0; step < (test::sanitized ? 12 : 30); ++step) {
    if (!windows.empty() && random() % 3 == 0) {
      auto const one = random() % windows.size();
      world.free(windows[one].first);
      windows.erase(windows.begin() + static_cast<long>(one));
      continue;
    }
    u64 const count = 1 + random() % (step % 10 == 0 ? 500'000 : 2000);
    windows.emplace_back(world.window<u64>(count, Tags{1}), count);
    auto const [window, size] = windows.back();
    // The next process writes rank r's last element.
    for (u32 r = 0; r < world.size(); ++r)
      if ((r / world.ranks_per_device() + 1) % world.processes() == world.process()) {
        u64 const value = u64{r} << 32 | size;
        require(window.read(RankId{r})[size - 1] == 0, "zeroed");
        window.write(RankId{r}, size - 1, std::span<u64 const>(&value, 1));
      }
    world.run(Ring{world.window<u64>(2, Tags{4}), 1});
    for (auto const& [one, count_of_one] : windows)
      for (u32 r = 0; r < world.size(); ++r)
        require(one.read(RankId{r})[count_of_one - 1] == (u64{r} << 32 | count_of_one), "kept");
  }
});

TEST(Job, grows_its_heap_in_all_processes) {
  test::Job job("memory", 3, {{"MESHPOST_RANKS", "1"}});
  test::expect_well(job.wait());
}

// The same memory in two windows, and memory that is part of another window.
struct Overlapping {
  Window<u64> one, two, whole, within;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    auto const mine = one.local(self);
    if (self.thread() == 0) mine[0] = self.id() + 1;
    self.sync();
    self.put(two.at(next, 1), mine.subspan(0, 1));
    self.put_notify(within.at(next, 0), mine.subspan(0, 1), Tag{0});
    self.wait(within, Tag{0});
    u64 const before = (self.id() + self.size() - 1) % self.size() + 1;
    if (mine[1] != before) self.fail("two windows over the same memory");
    if (whole.local(self)[3] != before) self.fail("a window over another's memory");
  }
};

struct WhereTheyAre {
  Window<u64> one, whole, out;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.thread() != 0) return;
    out.local(self)[0] = reinterpret_cast<u64>(one.local(self).data());
    out.local(self)[1] = reinterpret_cast<u64>(whole.local(self).data() + 3);
  }
};

Role const users_role("users", [] {
  test::register_boxed();
  World world(test::world_options());
  for (int round = 0; round < (test::sanitized ? 2 : 3); ++round) {
    test::UserMemory users_memory(world);
    try_everything(world, users_memory);
    require(test::wrong_blocks(world, 2, users_memory) == 0, "blocks");
    // All processes read and write the parts of all.
    auto const table = users_memory.window<u64>(world.processes() + 70'000, Tags{0}, "table");
    u64 const mine = world.process() + 100;
    for (u32 r = 0; r < world.size(); ++r)
      table.write(RankId{r}, 69'999 + world.process(), std::span<u64 const>(&mine, 1));
    world.free(world.window<int>(1));  // when it is there, all have written
    for (u32 r = 0; r < world.size(); ++r)
      for (u64 p = 0; p < world.processes(); ++p)
        require(table.read(RankId{r})[69'999 + p] == p + 100, "what each process wrote");
    world.free(table);
    auto const whole = world.window<u64>(5, Tags{0}, "whole"),
               one = users_memory.window<u64>(2, Tags{0}), places = world.window<u64>(2, Tags{0});
    world.run(WhereTheyAre{one, whole, places});
    std::vector<std::span<u64>> same(world.size()), within(world.size());
    for (u32 own = 0; own < world.devices().size() * world.ranks_per_device(); ++own) {
      u32 const rank = world.first_rank() + own;
      auto const place = places.read(RankId{rank});
      same[rank] = {reinterpret_cast<u64*>(place[0]), 2};
      within[rank] = {reinterpret_cast<u64*>(place[1]), 1};
    }
    auto const two = world.register_memory(same), inner = world.register_memory(within, Tags{1});
    world.run(Overlapping{one, two, whole, inner});
    world.free(inner);
    world.free(two);
  }
});

TEST(Job, has_windows_over_memory_of_users) {
  for (u32 const processes : {1, 3}) {
    test::Job job("users", processes, {{"MESHPOST_RANKS", "2"}});
    test::expect_well(job.wait());
  }
}

Role const late_reader("late_reader", [] {
  Allocation mine;  // outlives the World
  World world(test::world_options());
  mine = World::allocate(*world.devices()[0], Bytes{20 * sizeof(u32)});
  std::vector<std::span<u32>> parts(world.size());
  for (u32 own = 0; own < 2; ++own)
    parts[world.first_rank() + own] = {mine.as<u32>() + own * 10, 10};
  auto const window = world.register_memory(parts);
  u32 const number = world.process() + 5;
  for (u32 own = 0; own < 2; ++own)
    window.write(RankId{world.first_rank() + own}, 9, std::span(&number, 1));
  world.free(world.window<u32>(1));  // all have written
  if (world.process() != 0) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (u32 rank = 0; rank < world.size(); ++rank)
    require(window.read(RankId{rank})[9] == rank / 2 + 5, "what its process wrote");
});

TEST(Job, memory_of_users_is_there_until_all_have_ended_their_world) {
  for (auto const* const reach : {"", "device"}) {
    if (!MESHPOST_TEST_NETWORK && *reach) continue;
    test::Job job("late_reader", 3, {{"MESHPOST_RANKS", "2"}, {"MESHPOST_REACH", reach}});
    test::expect_well(job.wait());
  }
}

TEST(JobCpuOnly, has_windows_over_memory_of_users_on_any_devices) {
  for (std::vector<char const*> const& devices : {std::vector{"cpu:2", "none", "cpu:1*2"},
                                                  {"boxed:0,1", "boxed:0", "boxed:2*2"},
                                                  {"boxed:0", "cpu:2", "none", "boxed:1,cpu:1"}}) {
    if (!MESHPOST_TEST_NETWORK && devices.size() > 3) continue;
    test::Job job(
        "users", static_cast<u32>(devices.size()), {{"MESHPOST_RANKS", "2"}},
        [&](u32 process) -> test::Variables { return {{"MESHPOST_DEVICES", devices[process]}}; });
    test::expect_well(job.wait());
  }
}

struct Extra {
  Window<int> window;
  MESHPOST_FN void operator()(Rank& self) const {
    self.start_timer();
    self.notify(window, RankId{self.size() - 1}, Tag{0});
    self.stop_timer();
  }
};

Role const unconsumed("unconsumed", [] {
  World world(test::world_options());
  auto const window = world.window<int>(1, Tags{1}, "heap");
  auto const result = world.run(Extra{window});
  require(result.unconsumed.size() == 1, "one unconsumed notification");
  require(
      result.unconsumed[0].rank == world.size() - 1 && result.unconsumed[0].count == world.size(),
      "all at the last rank");
  require(result.timings.size() == world.device_count(), "timings of all devices");
  for (auto const& device : result.timings) require(device.size() == 1, "an interval a device");
  world.run(Ring{world.window<u64>(2, Tags{4}), 2});  // counters are clear again
});

TEST(Job, tells_all_processes_what_a_run_left_and_warns_once) {
  test::Job job("unconsumed", 3, {{"MESHPOST_RANKS", "2"}});
  auto const all = job.wait();
  test::expect_well(all);
  std::string text;
  for (auto const& one : all) text += one.out;
  auto const first = text.find("nobody consumed");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("nobody consumed", first + 1), std::string::npos);
}

Role const alone("alone", [] {
  World own({.alone = true});
  require(own.processes() == 1 && own.process() == 0, "alone");
  World shared(test::world_options());
  require(shared.processes() == 3, "together");
  own.run(Ring{own.window<u64>(2, Tags{4}), 2 + shared.process()});
  World other(test::world_options());  // several at a time
  auto one = shared.launch(Ring{shared.window<u64>(2, Tags{4}), 20});
  auto two = other.launch(Ring{other.window<u64>(2, Tags{4}), 20});
  two.wait();
  one.wait();
});

TEST(Job, has_worlds_of_one_process_and_several_of_all) {
  test::Job job("alone", 3, {{"MESHPOST_RANKS", "2"}});
  test::expect_well(job.wait());
}

}  // namespace
}  // namespace meshpost
