// Exchanges inside a kernel: halos are those of their step, whatever the plan and however late
// ranks are.
#include "array/kernels/exchange.hpp"

#include "support/errors.hpp"
#include "support/job.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::RandomNeeds;
using test::says;

class ExchangeOfRanks : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, ExchangeOfRanks, test::all_shapes(), test::shape_name);

TEST_P(ExchangeOfRanks, brings_each_halo_its_step) {
  for (int round = 0; round < (test::sanitized ? 2 : 5); ++round) {
    u64 const seed = std::random_device{}();
    SCOPED_TRACE(seed);
    RandomNeeds const random(seed, world.device_count());
    auto const plan = Plan::from_indices(random.distribution, random.needs);
    ASSERT_EQ(test::wrong_exchanges(world, plan, seed, test::launch_of(GetParam())), "");
  }
}

TEST_P(ExchangeOfRanks, brings_each_frame_its_step) {
  for (int round = 0; round < (test::sanitized ? 3 : 6); ++round) {
    u64 const seed = std::random_device{}();
    ASSERT_EQ(test::wrong_box_exchanges(world, seed, test::launch_of(GetParam())), "") << seed;
  }
}

TEST_P(ExchangeOfRanks, may_follow_another_in_the_same_kernel) {
  u32 const parts = world.device_count();
  std::vector<std::vector<u64>> needs(parts);
  u64 const each = 1500;
  for (u32 part = 1; part < parts; ++part)
    for (u64 i = 0; i < each; ++i) needs[part].push_back(i);
  auto const plan = Plan::from_indices(Distribution::block(each * parts, parts), needs);
  auto const exchange = make_exchange<u64>(world, plan);
  auto const values = world.window<u64>(shared_parts(world, 2 * each), Tags{0});
  auto const own = world.window<u64>(shared_parts(world, 2), Tags{0});
  auto const wrong = world.window<u32>(shared_parts(world, 1), Tags{0});
  auto const delays = world.window<u32>(1, Tags{1});
  for (u32 part = 0; part < parts; ++part) {
    u64 const sizes[] = {plan.of(part).own, plan.of(part).size()};
    own.write(RankId{part * world.ranks_per_device()}, 0, std::span<u64 const>(sizes));
  }
  for (int round = 0; round < 10; ++round)
    world.run(test::TwoInOne{exchange, values, own, wrong, delays, 7}, test::launch_of(GetParam()));
  for (u32 part = 0; part < parts; ++part)
    EXPECT_EQ(wrong.read(RankId{part * world.ranks_per_device()})[0], 0u) << part;
}

// The sum over the neighbours in a frame, of numbers that are linear in the coordinates.
struct SumsNeighbours {
  Box box;
  Sides sides;
  Window<i64> field;
  Window<u32> wrong;

  MESHPOST_FN static i64 value(Cell cell) { return 3 * cell.x + 50 * cell.y - 7 * cell.z; }

  MESHPOST_FN void operator()(Rank& self) const {
    Box const frame = box.grown(sides), inner = frame.shrunk(sides);
    auto const x = field.local(self);
    self.each(frame.cells(), [&](u64 place) { x[place] = value(frame.cell_at(place)); });
    self.sync();
    self.each(inner.cells(), [&](u64 place) {
      Cell const cell = inner.cell_at(place);
      i64 sum = 0;
      for (u32 d = 0; d < 3; ++d)
        for (i64 const step : {-1, 1}) {
          Cell next = cell;
          next[d] += step;
          if (box.contains(cell) && frame.contains(next)) sum += x[frame.place_of(next)];
        }
      if (sum != 6 * value(cell)) wrong.local(self)[0] = 1;
    });
  }
};

TEST(KernelBoxes, have_places_for_cells_in_frames) {
  World world(test::options(1));
  Box const box{{-2, 3, 5}, {4, 6, 9}};
  auto const field = world.window<i64>(8 * 5 * 6);
  auto const wrong = world.window<u32>(1);
  world.run(SumsNeighbours{box, Sides::all(1), field, wrong});
  EXPECT_EQ(field.read(RankId{0})[0], SumsNeighbours::value({-3, 2, 4}));
  EXPECT_EQ(wrong.read(RankId{0})[0], 0u);
}

struct Foreign {
  Exchange<int> exchange;
  MESHPOST_FN void operator()(Rank& self) const { RankExchange<int> const halo(self, exchange); }
};

TEST(ExchangeMisuse, of_another_world_or_none_ends_the_run) {
  World world(test::options(1)), other(test::options(1));
  std::vector<std::vector<u64>> const needs(other.device_count());
  auto const plan = Plan::from_indices(Distribution::block(9, other.device_count()), needs);
  auto const foreign = make_exchange<int>(other, plan);
  for (auto const& one : {foreign, Exchange<int>()})
    EXPECT_TRUE(says(error_of([&] { world.run(Foreign{one}); }), Kind::kernel_failed, {"window"}));
}

// Rank 0 of each device alone, so that nothing else waits or fails.
struct Misused {
  Exchange<int> exchange;
  Window<int> memory;
  enum class How : u32 {
    finishes_first,
    starts_twice,
    starts_another,
    has_too_little_to_send,
    has_left_its_span,
    has_no_room
  } how;

  MESHPOST_FN void operator()(Rank& self) const {
    RankExchange<int> halo(self, exchange);
    auto const x = memory.local(self), little = x.subspan(0, 1);
    if (how == How::finishes_first) halo.finish(x);
    halo.start(how == How::has_too_little_to_send ? little
               : how == How::has_left_its_span    ? x.subspan(0, x.size() + 1)
                                                  : x);
    if (how == How::starts_twice) halo.start(x);
    if (how == How::starts_another) RankExchange<int>(self, exchange).start(x);
    halo.finish(how == How::has_no_room ? little : x);
  }
};

TEST(ExchangeMisuse, ends_the_run_and_says_what_is_wrong) {
  World world(test::options(1));
  u32 const parts = world.device_count();
  std::vector<std::vector<u64>> const needs(parts, std::vector<u64>{0, 1, 2});
  auto const plan = Plan::from_indices(Distribution::block(u64{4} * parts, parts), needs);
  auto const exchange = make_exchange<int>(world, plan);
  auto const memory = world.window<int>(shared_parts(world, 16));
  auto const run = [&](Misused::How how) {
    return error_of([&] { world.run(Misused{exchange, memory, how}); });
  };
  using enum Misused::How;
  EXPECT_TRUE(says(run(finishes_first), Kind::kernel_failed, {"finish() without start()"}));
  EXPECT_TRUE(
      says(run(starts_twice), Kind::kernel_failed, {"start() before finish() of the last one"}));
  EXPECT_TRUE(says(run(has_left_its_span), Kind::kernel_failed, {"leaves its span"}));
  EXPECT_TRUE(says(run(has_too_little_to_send), Kind::kernel_failed,
                   {"fewer elements than the plan's part"}));
  EXPECT_TRUE(says(run(has_no_room), Kind::kernel_failed, {"fewer elements than the plan's part"}));
  u64 const seed = 5;  // and goes on
  EXPECT_EQ(test::wrong_exchanges(world, plan, seed), "");
  std::vector<std::vector<u64>> const more(parts + 1);
  auto const other = Plan::from_indices(Distribution::block(9, parts + 1), more);
  EXPECT_TRUE(says(error_of([&] { make_exchange<int>(world, other); }), Kind::bad_argument,
                   {"make_exchange", "the plan has", "give each device one part"}));
}

test::Role const exchanges("random_exchanges", [] {
  World world(test::world_options());
  JobMemory job;
  for (u64 seed = 1; seed <= (test::sanitized ? 4 : 12); ++seed) {
    RandomNeeds const random(seed, world.device_count());
    u32 const first = world.first_rank() / world.ranks_per_device();
    std::span const needs(random.needs);
    auto const plan =
        Plan::from_indices(random.distribution, needs.subspan(first, world.devices().size()), &job);
    auto const wrong = test::wrong_exchanges(world, plan, seed);
    test::require(wrong.empty(), "seed " + std::to_string(seed) + ": " + wrong);
  }
});

test::Role const box_exchanges("random_box_exchanges", [] {
  World world(test::world_options());
  for (u64 seed = 1; seed <= (test::sanitized ? 4 : 12); ++seed) {
    auto const wrong = test::wrong_box_exchanges(world, seed);
    test::require(wrong.empty(), "seed " + std::to_string(seed) + ": " + wrong);
  }
});

test::Role const different("different_plans", [] {
  World world(test::world_options());
  JobMemory job;
  std::vector<std::vector<u64>> const needs(1);
  auto const distribution = Distribution::block(9, world.device_count());
  auto const plan = Plan::from_indices(distribution, needs, &job);
  test::print_error(
      [&] { make_exchange<int>(world, world.process() == 0 ? plan : plan.reverse()); });
});

TEST(JobExchange, of_different_plans_is_refused) {
  test::Job job("different_plans", 2, {{"MESHPOST_DEVICES", "cpu:1"}});
  auto const& all = job.wait();
  test::expect_well(all);
  for (auto const& one : all) EXPECT_THAT(one.out, testing::HasSubstr("of plan"));
}

struct Nothing {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

// The others are in a call of a World then, which knows nothing of the JobMemory.
test::Role const alone("has_an_exception_alone", [] {
  World world(test::world_options());
  JobMemory job;
  std::vector<std::vector<u64>> const needs(1);
  auto const plan = Plan::from_indices(Distribution::block(10, 2), needs, &job);
  if (job.process() == 1) static_cast<void>(plan.place_of(1, 9999));
  world.run(Nothing{});
});

TEST(JobExchange, of_a_process_with_an_exception_keep_nobody_waiting) {
  test::Job job("has_an_exception_alone", 2);
  auto const& all = job.wait(std::chrono::seconds(20));
  EXPECT_THAT(all[1].out,
              testing::HasSubstr("uncaught: Distribution::owner_of: there is no element 9999"));
  EXPECT_THAT(all[0].out, testing::HasSubstr("[peer lost]"));
}

TEST(JobExchange, brings_each_frame_its_step) {
  test::Job job("random_box_exchanges", 2, {{"MESHPOST_RANKS", "3"}});
  test::expect_well(job.wait());
}

TEST(JobExchange, brings_each_halo_its_step) {
  for (u32 const processes : {2, 3}) {
    test::Job job("random_exchanges", processes, {{"MESHPOST_RANKS", "3"}});
    test::expect_well(job.wait());
  }
}

}  // namespace
}  // namespace meshpost
