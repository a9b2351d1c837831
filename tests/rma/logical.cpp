// Logical devices: several devices of a World on one physical device. 9, 16 and 27 of them work
// like as many physical devices.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::mixed;
using test::says;

std::string whole_device() { return test::on_gpus() ? "cuda:0" : "cpu:0"; }
std::string logical_devices(u32 parts) {
  return (test::on_gpus() ? "cuda:0*" : "cpu:1*") + std::to_string(parts);
}

struct Split {
  u32 parts, ranks;
};

class LogicalDevices : public testing::TestWithParam<Split> {
 protected:
  World world{test::options(GetParam().ranks, logical_devices(GetParam().parts))};
};

INSTANTIATE_TEST_SUITE_P(Splits, LogicalDevices,
                         testing::Values(Split{2, 8}, Split{9, 2}, Split{16, 1}, Split{27, 2}),
                         [](auto const& one) {
                           return std::to_string(one.param.parts) + "_devices_of_" +
                                  std::to_string(one.param.ranks) + "_ranks";
                         });

TEST_P(LogicalDevices, are_devices_of_their_world) {
  auto const& [parts, ranks] = GetParam();
  EXPECT_EQ(world.device_count(), parts);
  EXPECT_EQ(world.size(), parts * ranks);
  ASSERT_EQ(world.devices().size(), parts);
  for (u32 d = 0; d < parts; ++d)
    EXPECT_EQ(world.devices()[d]->name(), whole_device() + "." + std::to_string(d));
  EXPECT_EQ(physical_devices(world.devices()).size(), 1u);
}

// Each rank sends to the rank `step` further in every round, and keeps a sum that depends on all.
struct LogicalRing {
  Window<u64> window;
  test::Findings findings;
  u32 step, rounds;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = window.local(self);
    findings.add(self, self.device() != self.id() / self.local_size() ||
                           self.device_of(self.id()) != self.device());
    RankId const next{(self.id() + step) % self.size()};
    u64 const from = (self.id() + self.size() - step) % self.size();
    for (u32 round = 0; round < rounds; ++round) {
      u64 const half = 64 * (round % 2);
      self.each(64, [&](u64 i) { mine[128 + half + i] = mixed(self.id(), round, i); });
      self.put_notify(window.at(next, half), mine.subspan(128 + half, 64), Tag{round % 2});
      self.wait(window, Tag{round % 2});
      self.each(64, [&](u64 i) { findings.add(self, mine[half + i] != mixed(from, round, i)); });
      self.barrier();
    }
  }
};

TEST_P(LogicalDevices, pass_messages_to_each_other) {
  auto const findings = test::make_findings(world);
  auto const window = world.window<u64>(256, Tags{2}, "inbox");
  for (u32 const step : {1u, GetParam().ranks, world.size() - 1})
    world.run(LogicalRing{window, findings, step, 40});
  EXPECT_EQ(test::total(world, findings), 0u);
}

// Words of parts of different sizes, written by all ranks and read back.
struct Words {
  Window<u64> window;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = window.local(self);
    for (u32 target = 0; target < self.size(); ++target)
      self.put_value(window.at(RankId{target}, self.id()), mixed(self.id(), target));
    self.barrier();
    self.sync();
    for (u32 source = 0; source < self.size(); ++source)
      self.wait_until(mine.subspan(source, 1), Compare::equal, mixed(source, self.id()));
    self.barrier();
    auto const last = mine.subspan(mine.size() - 1, 1);
    RankId const other{(self.id() + self.size() / 2) % self.size()};
    self.get(last, window.at(other, self.id()));
    findings.add(self, last[0] != mixed(self.id(), other));
  }
};

TEST_P(LogicalDevices, have_memory_of_their_own) {
  auto const findings = test::make_findings(world);
  u64 const n = world.size();
  std::vector<Extent> extents;
  for (u64 rank = 0, offset = 0; rank < n; ++rank) {
    if (rank % GetParam().ranks == 0) offset = 0;  // of this device's block
    extents.push_back({offset, n + 1 + rank % 3});
    offset += extents.back().count;
  }
  auto const window = world.window<u64>(extents, Tags{1}, "words");
  world.run(Words{window, findings});
  EXPECT_EQ(test::total(world, findings), 0u);
  for (u32 rank = 0; rank < n; ++rank) {
    auto const words = window.read(RankId{rank});
    ASSERT_EQ(words.size(), extents[rank].count);
    for (u32 source = 0; source < n; ++source) ASSERT_EQ(words[source], mixed(source, rank));
  }
}

struct Collect {
  Window<u64> data;
  Communicator world, across;  // across: ranks of equal number on all devices
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = data.local(self);
    auto const device = self.device_communicator();
    for (u32 round = 0; round < 20; ++round) {
      if (self.thread() == 0) mine[0] = mine[1] = mine[2] = self.id() + round;
      self.all_reduce(world, mine.subspan(0, 1), Sum{});
      self.all_reduce(device, mine.subspan(1, 1), Sum{});
      self.all_reduce(across, mine.subspan(2, 1), Sum{});
    }
  }
};

TEST_P(LogicalDevices, take_part_in_collectives_of_the_world_of_a_device_and_across) {
  auto const& [parts, ranks] = GetParam();
  auto const across =
      world.split(world.communicator(), [n = ranks](RankId rank) { return i64{rank % n}; });
  auto const data = world.window<u64>(3, Tags{0}, "sums");
  world.run(Collect{data, world.communicator(), across});
  u64 const n = world.size();
  for (u32 rank = 0; rank < n; ++rank) {
    u64 const first = rank / ranks * u64{ranks}, place = rank % ranks;
    auto const sums = data.read(RankId{rank});
    EXPECT_EQ(sums[0], n * (n - 1) / 2 + 19 * n);
    EXPECT_EQ(sums[1], u64{ranks} * first + u64{ranks} * (ranks - 1) / 2 + 19 * ranks);
    EXPECT_EQ(sums[2], u64{parts} * place + ranks * (u64{parts} * (parts - 1) / 2) + 19 * parts);
  }
}

struct Tell {
  MESHPOST_FN void operator()(Rank& self) const {
    self.start_timer();
    self.log("device {}", self.device());
    self.stop_timer();
  }
};

TEST_P(LogicalDevices, log_and_measure_each_for_itself) {
  test::Listener const listener;
  auto const result = world.run(Tell{});
  auto const lines = listener.lines();
  ASSERT_EQ(lines.size(), world.size());
  for (auto const& [rank, line] : lines)
    EXPECT_EQ(line, "device " + std::to_string(rank / GetParam().ranks));
  ASSERT_EQ(result.timings.size(), world.device_count());
  for (auto const& timings : result.timings) EXPECT_EQ(timings.size(), 1u);
}

struct FailsOn {
  u32 device;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.device() == device && self.local_id() == 0) self.fail("on purpose");
    self.barrier();
  }
};

struct WaitsForNobody {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() + 1 == self.size()) self.wait(window, Tag{0});
  }
};

TEST_P(LogicalDevices, are_named_by_errors_and_used_again_after_them) {
  u32 const last = GetParam().parts - 1;
  auto const rank = std::to_string(last * GetParam().ranks);
  auto const name = whole_device() + "." + std::to_string(last);
  EXPECT_TRUE(says(error_of([&] { world.run(FailsOn{last}); }), Kind::kernel_failed,
                   {"on purpose", "rank " + rank + " (" + name + ")"}));
  auto const window = world.window<u32>(1, Tags{1}, "inbox");
  EXPECT_TRUE(says(error_of([&] { world.run(WaitsForNobody{window}); }), Kind::deadlock,
                   {"rank " + std::to_string(world.size() - 1) + " waits", "inbox"}));
  test::Listener const listener;
  world.run(Tell{});
  EXPECT_EQ(listener.lines().size(), world.size());
}

TEST_P(LogicalDevices, have_rows_of_their_own_in_a_timeline) {
  auto const file = testing::TempDir() + "logical" + std::to_string(getpid()) + ".json";
  auto const findings = test::make_findings(world);
  auto const window = world.window<u64>(256, Tags{2});
  world.run(LogicalRing{window, findings, 1, 3}, {.trace = file});
  std::ifstream in(file);
  auto const json = nlohmann::json::parse(in);
  std::filesystem::remove(file);
  std::vector<std::string> names;
  std::vector<u32> puts(world.device_count());
  for (auto const& event : json["traceEvents"]) {
    if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
    if (event["name"] == "put_notify") ++puts.at(event["pid"].get<u32>());
  }
  ASSERT_EQ(names.size(), world.device_count());
  for (u32 d = 0; d < names.size(); ++d) {
    EXPECT_EQ(names[d], whole_device() + "." + std::to_string(d));
    EXPECT_EQ(puts[d], 3 * GetParam().ranks);
  }
}

}  // namespace
}  // namespace meshpost
