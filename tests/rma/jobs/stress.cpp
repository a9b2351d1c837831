// Random programs against the oracle (tests/rma/stress.cpp), in jobs. All processes draw the same
// programs, and each compares the results of its own ranks.
#include "support/job.hpp"
#include "support/random_programs.hpp"

namespace meshpost {
namespace {

constexpr char const* first_seed = "MESHPOST_TEST_FIRST_SEED";

void play_programs(u32 runs) {
  World world(test::world_options());
  auto const wrong = test::compare_with_oracle(world, {0, 1, 1}, test::number(first_seed, 1),
                                               test::operations(), runs);
  test::require(wrong.empty(), wrong);
}

test::Role const one_run_role("programs_of_one_run", [] { play_programs(1); });
test::Role const deep_role("programs_of_queued_runs", [] { play_programs(test::deep); });

void expect_as_oracle_says(std::string const& role) {
  test::Job job(role, 4, {{"MESHPOST_RANKS", "3"}, {first_seed, std::to_string(test::any_seed())}});
  auto const all = job.wait(std::chrono::seconds(60 + test::operations() / 1000));
  test::expect_well(all);
  std::printf("%s", all[0].out.c_str());
}

TEST(Job, leaves_what_a_sequential_oracle_says_of_random_programs) {
  expect_as_oracle_says("programs_of_one_run");
}

TEST(Job, leaves_what_a_sequential_oracle_says_of_each_queued_run) {
  expect_as_oracle_says("programs_of_queued_runs");
}

}  // namespace
}  // namespace meshpost
