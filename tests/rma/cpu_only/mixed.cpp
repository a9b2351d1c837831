// Devices of two kinds in one process, without a GPU: CPU devices, and others that act as if the
// host could not reach their memory.
#include "support/boxed.hpp"
#include "support/errors.hpp"
#include "support/everything.hpp"
#include "support/users.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

class MixedKinds : public testing::TestWithParam<char const*> {
 protected:
  MixedKinds() { test::register_boxed(); }
  static WorldOptions options(u32 ranks) { return test::options(ranks, GetParam()); }
};

TEST_P(MixedKinds, have_every_operation_between_all_ranks) {
  World world(options(3));
  test::try_everything(world);
}

TEST_P(MixedKinds, send_blocks_of_all_sizes_to_each_other_and_get_them_back) {
  World world(options(2));
  for (int run = 0; run < 2; ++run) EXPECT_EQ(test::wrong_blocks(world, 3), 0u);
}

struct Leave {  // more than a command queue holds, to ranks that end without polling
  Window<u32> window;
  u32 times;
  void operator()(Rank& self) const {
    auto const mine = window.local(self);
    RankId const next{(self.id() + self.size() / 2) % self.size()};
    for (u32 i = 0; i < times; ++i) {
      mine[1] = i + 1;
      self.put_notify(window.at(next, 0), mine.subspan(1, 1), Tag{0});
    }
  }
};

TEST_P(MixedKinds, leave_what_was_sent_to_ranks_that_have_ended) {
  World world(options(1));
  auto const window = world.window<u32>(2, Tags{1}, "heap");
  constexpr u32 count = test::sanitized ? 600 : 2000;
  static_assert(count > CommandQueue::capacity);
  for (int run = 0; run < 2; ++run) {
    auto const result = world.run(Leave{window, count});
    EXPECT_EQ(result.unconsumed.size(), world.size());
    for (auto const& left : result.unconsumed) EXPECT_EQ(left.count, count);
    for (u32 rank = 0; rank < world.size(); ++rank) EXPECT_EQ(window.read(RankId{rank})[0], count);
  }
}

struct Sum {
  Communicator pairs;
  Window<u32> out;
  void operator()(Rank& self) const {
    auto const mine = out.local(self);
    mine[0] = self.id();
    self.all_reduce(pairs, mine.subspan(0, 1), meshpost::Sum{});
    auto const last = RankId{self.size() - 1};
    if (self.id() == 0) self.put_value(out.at(last, self.size() - 1), 77);
  }
};

TEST_P(MixedKinds, have_groups_and_windows_whose_parts_differ) {
  World world(options(2));
  u32 const half = world.size() / 2;
  auto const pairs = world.split(world.communicator(), [=](RankId r) { return i64{r % half}; });
  std::vector<Extent> parts;
  for (u32 r = 0; r < world.size(); ++r) parts.push_back({r % 2 * 20, 1 + r});
  auto const out = world.window<u32>(parts, Tags{1}, "out");
  world.run(Sum{pairs, out});
  for (u32 r = 0; r < world.size(); ++r) {
    auto const part = out.read(RankId{r});
    ASSERT_EQ(part.size(), 1 + r);
    EXPECT_EQ(part[0], r % half * 2 + half);
  }
  EXPECT_EQ(out.read(RankId{world.size() - 1}).back(), 77u);
}

struct WaitAcross {  // after one message each, so that something was in flight
  Window<u32> window;
  void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    self.notify(window, next, Tag{3});
    self.wait(window, Tag{3});
    self.wait(window, Tag{3}, 1, next);
  }
};

TEST_P(MixedKinds, that_all_wait_are_found_deadlocked_at_once_and_named) {
  World world(options(2));
  auto const window = world.window<u32>(1, Tags{4}, "inbox");
  for (int run = 0; run < 5; ++run) {
    auto const start = std::chrono::steady_clock::now();
    auto const error = error_of([&] { world.run(WaitAcross{window}); });
    EXPECT_TRUE(says(error, Kind::deadlock,
                     {"every rank that has not ended waits", "rank 0", "'inbox'", "tag 3"}));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
  test::try_everything(world);
}

struct FailMidway {  // while long blocks are in flight in all directions
  test::Blocks blocks;
  void operator()(Rank& self) const {
    if (self.id() == self.size() - 1) {
      auto const out = blocks.copies.local(self);
      for (u32 to = 0; to < self.size() - 1; ++to)
        self.put_notify(blocks.inbox.at(RankId{to}, self.id() * test::Blocks::largest), out,
                        Tag{self.id()});
      self.fail("it had enough");
    }
    blocks(self);
  }
};

TEST_P(MixedKinds, survive_a_run_that_one_rank_ends) {
  World world(options(2));
  u64 const all = test::Blocks::largest * (world.size() + 1);
  auto const inbox = world.window<u64>(all, Tags{world.size()}, "inbox"),
             copies = world.window<u64>(test::Blocks::largest, Tags{0}, "copies");
  auto const findings = test::make_findings(world), ignored = test::make_findings(world);
  for (int run = 0; run < 5; ++run) {
    FailMidway const failing{{inbox, copies, 2, ignored}};
    EXPECT_TRUE(
        says(error_of([&] { world.run(failing); }), Kind::kernel_failed, {"it had enough"}));
    world.run(test::Blocks{inbox, copies, 2, findings});  // nothing of the previous run affects it
    EXPECT_EQ(test::total(world, findings), 0u);
  }
}

TEST_P(MixedKinds, do_not_run_where_one_kind_can_not_be_launched) {
  World world(options(2));
  auto const window = world.window<u32>(1, Tags{4}, "inbox");
  Launch launch;
  launch.scratch = Bytes{100'000};
  for (int run = 0; run < 3; ++run)  // those of the other kind run already, and wait
    EXPECT_TRUE(says(error_of([&] { world.run(WaitAcross{window}, launch); }), Kind::out_of_memory,
                     {"100000 bytes of scratch", "at most 65536"}));
  test::try_everything(world);
}

TEST_P(MixedKinds, reach_memory_of_the_user) {
  World world(options(2));
  test::UserMemory memory(world);
  test::try_everything(world, memory);
  EXPECT_EQ(test::wrong_blocks(world, 3, memory), 0u);
}

struct Tell {  // the places of their parts, which a stream can read only after the run
  Leave leave;
  u32 const** parts;
  void operator()(Rank& self) const {
    parts[self.id()] = leave.window.local(self).data();
    leave(self);
  }
};

TEST_P(MixedKinds, let_streams_go_on_when_all_has_arrived) {
  World world(options(1));
  auto const window = world.window<u32>(2, Tags{1}, "heap");
  auto const stream = world.devices().front()->make_stream();
  Launch launch;
  launch.streams = {stream.get()};
  std::vector<u32 const*> parts(world.size());
  std::vector<u32> seen;
  auto run = world.launch(Tell{{window, 700}, parts.data()}, launch);
  stream->call([&] {
    for (auto const* part : parts) seen.push_back(*part);
  });
  stream->synchronize();
  EXPECT_EQ(seen, std::vector<u32>(world.size(), 700u));
  run.wait();
}

std::string name_of(testing::TestParamInfo<char const*> const& info) {
  std::string name;
  for (char const c : std::string(info.param))
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Some, MixedKinds,
                         testing::Values("cpu:1,boxed:0", "cpu:2,boxed:0,1", "boxed:0*2,cpu:1*2"),
                         name_of);

TEST(Kinds, that_are_named_twice_or_do_not_exist_are_refused) {
  test::register_boxed();
  EXPECT_TRUE(says(error_of([] { open_devices("cpu:1,boxed:0,cpu:2"); }), Kind::bad_argument,
                   {"names cpu devices in two places", "together"}));
  EXPECT_TRUE(says(error_of([] { open_devices("cpu:1,tpu:0"); }), Kind::bad_argument,
                   {"no kind of device called 'tpu'"}));
  EXPECT_TRUE(says(error_of([] { open_devices("cpu:1,boxed:9"); }), Kind::bad_argument,
                   {"there is no boxed:9"}));
  auto const devices = open_devices("boxed:1,0*2,cpu:1");
  ASSERT_EQ(devices.size(), 5u);
  EXPECT_EQ(devices[2]->name(), "boxed:0.0");
  EXPECT_EQ(devices[4]->name(), "cpu:0");
}

}  // namespace
}  // namespace meshpost
