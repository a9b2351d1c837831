// Random programs against a sequential oracle. They use all operations, puts of random sizes at
// random places, counts by pair, several windows, and one run or up to 100 queued runs. With
// MESHPOST_LANES and MESHPOST_REACH the same messages go by lanes and by the host.
#include "support/hooks.hpp"
#include "support/random_programs.hpp"

namespace meshpost {
namespace {

using test::compare_with_oracle;
using test::deep;

constexpr u32 one_run = 1;

class RandomPrograms : public test::EveryShape {
 protected:
  void expect_as_oracle_says(World& on, u64 seed, u64 operations, u32 runs) const {
    EXPECT_EQ(compare_with_oracle(on, launch.threads, seed, operations, runs), "");
  }
  void expect_the_same_when_delayed(u32 runs) {
    if (test::on_gpus()) GTEST_SKIP() << "hooks are on CPU devices";
    u64 const seed = test::number("MESHPOST_TEST_SEED", test::any_seed());
    test::Delays const delays(seed, 8);
    expect_as_oracle_says(world, seed, test::operations() / 5, runs);
    EXPECT_GT(delays.asked(), 0);
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, RandomPrograms, test::all_shapes(), test::shape_name);

TEST_P(RandomPrograms, leave_what_a_sequential_oracle_says) {
  expect_as_oracle_says(world, test::any_seed(), test::operations(), one_run);
}

TEST_P(RandomPrograms, leave_what_a_sequential_oracle_says_of_each_queued_run) {
  expect_as_oracle_says(world, test::any_seed(), test::operations(), deep);
}

TEST_P(RandomPrograms, leave_the_same_when_steps_are_delayed_by_seed) {
  expect_the_same_when_delayed(one_run);
}

TEST_P(RandomPrograms, leave_the_same_in_queued_runs_when_steps_are_delayed_by_seed) {
  expect_the_same_when_delayed(deep);
}

TEST_P(RandomPrograms, keep_the_delivery_rule) {
  if (test::on_gpus()) GTEST_SKIP() << "delivery is checked on CPU devices";
  auto wanted = test::options(GetParam().ranks, test::devices(GetParam().spread));
  wanted.check_delivery = true;
  World checked(wanted);
  for (u32 const runs : {one_run, deep})
    expect_as_oracle_says(checked, 1, test::operations() / 5, runs);
}

}  // namespace
}  // namespace meshpost
