// The host as an endpoint: it notifies ranks and is notified by them.
#include <array>
#include <chrono>
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost::host_tests {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

// Each rank answers every notification: element 1 is element 0 plus its number.
struct Answer {
  Window<u32> box;
  HostId host;
  u32 times;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = box.local(self);
    for (u32 i = 0; i < times; ++i) {
      self.wait(box, Tag{0});
      if (self.thread() == 0) mine[1] = mine[0] + self.id();
      self.notify(box, host, Tag{1});
    }
  }
};
struct Consume {
  Window<u32> box;
  u32 count;
  MESHPOST_FN void operator()(Rank& self) const { self.wait(box, Tag{0}, count); }
};
struct Tell {
  Window<u32> box;
  HostId host;
  u32 tag;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = box.local(self);
    if (self.thread() == 0) mine[0] = self.id() + 7;
    self.notify(box, host, Tag{tag});
  }
};
struct Fail {
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.fail("no");
  }
};
struct Nothing {
  MESHPOST_FN void operator()(Rank&) const {}
};
Launch with_host() {
  Launch launch;
  launch.with_host = true;
  return launch;
}

enum class Reach { one_device, several_devices, apart };

class Host : public testing::TestWithParam<Reach> {
 protected:
  static WorldOptions options() {
    bool const one = GetParam() == Reach::one_device;
    auto wanted = test::options(
        2, test::devices(one ? test::Spread::one_device : test::Spread::several_devices));
    wanted.apart = GetParam() == Reach::apart;
    return wanted;
  }
  World world_{options()};
  Window<u32> box_ = world_.window<u32>(4, Tags{3}, "box");

  void put(u32 rank, u32 value) { box_.put_notify(RankId{rank}, 0, std::span(&value, 1), Tag{0}); }
  u32 at(u32 rank, u64 place) { return box_.read(RankId{rank})[place]; }
};

TEST_P(Host, wakes_ranks_and_is_answered_while_they_run) {
  u32 const rounds = test::on_gpus() ? 50 : 100;
  auto run = world_.launch(Answer{box_, world_.host(), rounds}, with_host());
  for (u32 i = 0; i < rounds; ++i) {
    for (u32 rank = 0; rank < world_.size(); ++rank) put(rank, 1000 * i);
    box_.wait(Tag{1}, world_.size());
    for (u32 rank = 0; rank < world_.size(); ++rank)
      ASSERT_EQ(at(rank, 1), 1000 * i + rank) << "round " << i;
  }
  EXPECT_TRUE(run.wait().unconsumed.empty());
}

TEST_P(Host, raises_counts_for_the_next_run) {
  for (u32 i = 0; i < 3; ++i) {
    for (u32 rank = 0; rank < world_.size(); ++rank)
      for (u32 k = 0; k < 4; ++k) put(rank, k);
    EXPECT_TRUE(world_.run(Consume{box_, 4}).unconsumed.empty());
  }
}

TEST_P(Host, comes_after_runs_that_it_takes_no_part_in) {
  for (u32 rank = 0; rank < world_.size(); ++rank) box_.notify(RankId{rank}, Tag{0});
  auto first = world_.launch(Consume{box_, 1});
  for (u32 rank = 0; rank < world_.size(); ++rank) box_.notify(RankId{rank}, Tag{0});
  EXPECT_TRUE(first.done());
  EXPECT_TRUE(first.wait().unconsumed.empty());
  EXPECT_TRUE(world_.run(Consume{box_, 1}).unconsumed.empty());
}

TEST_P(Host, is_told_by_each_rank_and_keeps_what_it_has_not_consumed) {
  for (u32 i = 0; i < 4; ++i)
    EXPECT_TRUE(world_.run(Tell{box_, world_.host(), 2}).unconsumed.empty());
  box_.wait(Tag{2}, world_.size());
  for (u32 rank = 0; rank < world_.size(); ++rank) EXPECT_EQ(at(rank, 0), rank + 7);
  std::array<std::thread, 3> waiters;
  for (auto& one : waiters) one = std::thread([&] { box_.wait(Tag{2}, world_.size()); });
  for (auto& one : waiters) one.join();
  auto const error = error_of([&] { box_.wait(Tag{2}, 1, 50ms); });
  EXPECT_TRUE(says(error, Kind::deadline, {"window 'box'", "0 of 1", "tag 2", "0.05 s"}));
}

TEST_P(Host, is_named_where_nobody_consumed_what_it_sent) {
  test::Listener const listener;
  box_.notify(RankId{1}, Tag{2});
  box_.notify(RankId{1}, Tag{2});
  auto const result = world_.run(Nothing{});
  ASSERT_EQ(result.unconsumed.size(), 1u);
  auto const& left = result.unconsumed.front();
  EXPECT_EQ(left.rank.value, 1u);
  EXPECT_EQ(left.count, 2u);
  EXPECT_EQ(left.sender.value, world_.size());
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_NE(listener.warnings().front().find("the last from the host;"), std::string::npos)
      << listener.warnings().front();
}

TEST_P(Host, hears_at_once_of_a_run_that_fails_while_it_waits) {
  std::thread other([&] {
    std::this_thread::sleep_for(50ms);
    EXPECT_THROW(world_.run(Fail{}), Error);
  });
  auto const error = error_of([&] { box_.wait(Tag{1}, 2); });
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"window 'box'", "0 of 2", "a run failed"}));
  other.join();
  box_.notify(RankId{0}, Tag{0});  // both go on
  box_.notify(RankId{1}, Tag{0});
  for (u32 rank = 2; rank < world_.size(); ++rank) box_.notify(RankId{rank}, Tag{0});
  EXPECT_TRUE(world_.run(Consume{box_, 1}).unconsumed.empty());
}

// All notify the host, and then one fails.
struct TellAndFail {
  Window<u32> box;
  HostId host;
  MESHPOST_FN void operator()(Rank& self) const {
    self.notify(box, host, Tag{1});
    self.barrier();
    if (self.id() == 0) self.fail("no");
  }
};

TEST_P(Host, hears_of_a_run_that_has_failed_before_and_forgets_what_it_sent) {
  EXPECT_THROW(world_.run(TellAndFail{box_, world_.host()}), Error);
  EXPECT_TRUE(says(error_of([&] { box_.wait(Tag{1}); }), Kind::kernel_failed, {"0 of 1"}));
  world_.run(Tell{box_, world_.host(), 1});
  box_.wait(Tag{1}, world_.size());
  EXPECT_TRUE(says(error_of([&] { box_.wait(Tag{1}, 1, 20ms); }), Kind::deadline, {"0 of 1"}));
}

TEST_P(Host, that_wakes_nobody_ends_a_run_by_its_deadline_and_not_before) {
  auto launch = with_host();
  launch.deadline = 300ms;
  auto run = world_.launch(Consume{box_, 1}, launch);
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(run.done()) << "no deadlock: the host could still wake them";
  EXPECT_TRUE(says(error_of([&] { run.wait(); }), Kind::deadline, {"waits for tag 0"}));
  for (u32 rank = 0; rank < world_.size(); ++rank) box_.notify(RankId{rank}, Tag{0});
  EXPECT_TRUE(world_.run(Consume{box_, 1}).unconsumed.empty());
}

TEST_P(Host, reads_and_writes_what_a_run_does_not_touch) {
  auto const other = world_.window<u32>(1000, Tags{1}, "other");
  std::vector<u32> values(1000);
  for (u32 i = 0; i < 1000; ++i) values[i] = i * i;
  auto run = world_.launch(Consume{box_, 1}, with_host());
  for (u32 rank = 0; rank < world_.size(); ++rank) {
    other.write(RankId{rank}, 0, std::span<u32 const>(values));
    EXPECT_EQ(other.read(RankId{rank}), values);
  }
  EXPECT_FALSE(run.done());
  for (u32 rank = 0; rank < world_.size(); ++rank) box_.notify(RankId{rank}, Tag{0});
  run.wait();
}

TEST_P(Host, is_told_what_it_does_wrong) {
  EXPECT_TRUE(says(error_of([&] { box_.notify(RankId{99}, Tag{0}); }), Kind::bad_argument,
                   {"notify from the host", "rank 99"}));
  EXPECT_TRUE(says(error_of([&] { box_.notify(RankId{0}, Tag{3}); }), Kind::bad_argument,
                   {"window 'box'", "tag 3", "it has 3"}));
  EXPECT_TRUE(says(error_of([&] { box_.wait(Tag{1}, ~0u); }), Kind::bad_argument,
                   {"4294967295 notifications", "1073741824"}));
  EXPECT_TRUE(says(error_of([&] { box_.wait(Tag{3}); }), Kind::bad_argument,
                   {"wait on the host", "window 'box'", "tag 3"}));
  std::array<u32, 5> const five{};
  EXPECT_TRUE(
      says(error_of([&] { box_.put_notify(RankId{0}, 0, std::span<u32 const>(five), Tag{0}); }),
           Kind::bad_argument, {"window 'box'", "0 to 4", "which has 4"}));
  EXPECT_TRUE(
      says(error_of([&] { world_.host(1); }), Kind::bad_argument, {"process 1", "among 1"}));
  EXPECT_TRUE(says(error_of([&] { world_.run(Tell{box_, HostId{}, 0}); }), Kind::kernel_failed,
                   {"HostId::device"}));
  EXPECT_TRUE(says(error_of([&] { world_.run(Tell{box_, world_.host(), 3}); }), Kind::kernel_failed,
                   {"tag 3"}));
  auto const gone = world_.window<u32>(1);
  world_.free(gone);
  EXPECT_TRUE(says(error_of([&] { gone.notify(RankId{0}, Tag{0}); }), Kind::bad_argument,
                   {"was freed before"}));
  EXPECT_TRUE(says(error_of([&] { gone.wait(Tag{0}); }), Kind::bad_argument, {"was freed before"}));
  EXPECT_TRUE(world_.run(Nothing{}).unconsumed.empty()) << "nothing half done";
}

std::string name_of(testing::TestParamInfo<Reach> const& reach) {
  switch (reach.param) {
    case Reach::one_device: return "one_device";
    case Reach::several_devices: return "several_devices";
    default: return "apart";
  }
}
INSTANTIATE_TEST_SUITE_P(Reach, Host,
                         testing::Values(Reach::one_device, Reach::several_devices, Reach::apart),
                         name_of);

}  // namespace
}  // namespace meshpost::host_tests
