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

// Rank 0 of each device alone, so that nothing else waits or fails.
struct Misused {
  Exchange<int> exchange;
  Window<int> memory;
  enum class How : u32 { finishes_first, starts_twice, has_too_little_to_send, has_no_room } how;

  MESHPOST_FN void operator()(Rank& self) const {
    RankExchange<int> halo(self, exchange);
    auto const x = memory.local(self), little = x.subspan(0, 1);
    if (how == How::finishes_first) halo.finish(x);
    halo.start(how == How::has_too_little_to_send ? little : x);
    if (how == How::starts_twice) halo.start(x);
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

TEST(JobExchange, brings_each_halo_its_step) {
  for (u32 const processes : {2, 3}) {
    test::Job job("random_exchanges", processes, {{"MESHPOST_RANKS", "3"}});
    test::expect_well(job.wait());
  }
}

}  // namespace
}  // namespace meshpost
