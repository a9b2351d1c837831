// Random programs against a sequential oracle: all operations, puts of random sizes at random
// places, counted by pair, in several windows. MESHPOST_TEST_SEED repeats one program,
// MESHPOST_TEST_OPERATIONS says how many operations each test makes, of all ranks together.
#include <chrono>
#include <cstdlib>

#include "support/hooks.hpp"
#include "support/oracle.hpp"

namespace meshpost {
namespace {

using test::Command;
using test::mixed;
using test::windows;

u64 number(char const* variable, u64 otherwise) {
  char const* const text = std::getenv(variable);
  return text ? std::stoull(text) : otherwise;
}

// Programs on one World, one after the other: each finds what the ones before it left.
class Programs {
 public:
  Programs(World& world, Dim3 threads, u32 steps)
      : world_(world), threads_(threads), steps_(steps), oracle_(world.size()) {
    u32 const ranks = world.size();
    for (auto& inbox : kernel_.inbox)
      inbox = world.window<u8>(u64{ranks} * test::region, Tags{ranks}, "inbox");
    kernel_.words = world.window<u64>(ranks, Tags{0}, "words");
    kernel_.staging =
        world.window<u8>(u64{test::Interpreter::slots} * test::Interpreter::slot, Tags{0}, "out");
    kernel_.programs = world.window<Command>(steps + windows * ranks, Tags{0}, "programs");
    kernel_.findings = test::make_findings(world);
  }

  /// Returns how many operations that was.
  u64 run(u64 seed) {
    SCOPED_TRACE("MESHPOST_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto drawn = oracle_.draw(random, steps_);
    std::size_t length = 1;
    u64 operations = 0;
    for (auto const& program : drawn) {
      length = std::max(length, program.size());
      operations += program.size();
    }
    for (u32 r = 0; r < world_.size(); ++r) {
      drawn[r].resize(length);
      kernel_.programs.write(RankId{r}, 0, drawn[r]);
    }
    kernel_.length = static_cast<u32>(length);
    EXPECT_TRUE(world_.run(kernel_, {.threads = threads_}).leftovers.empty());
    EXPECT_EQ(test::total(world_, kernel_.findings), 0);
    for (u32 r = 0; r < world_.size(); ++r) {
      for (u32 w = 0; w < windows; ++w)
        EXPECT_TRUE(kernel_.inbox[w].read(RankId{r}) == oracle_.bytes(w, r)) << "at rank " << r;
      EXPECT_EQ(kernel_.words.read(RankId{r}), oracle_.words(r)) << "at rank " << r;
    }
    return operations;
  }

 private:
  World& world_;
  Dim3 threads_;
  u32 steps_;
  test::Oracle oracle_;
  test::Interpreter kernel_{};
};

// At least so many operations, in programs that begin with `seed`.
void run_and_compare(World& world, Dim3 threads, u64 seed, u64 operations) {
  u32 const steps = static_cast<u32>(std::clamp<u64>(operations / 25, 200, 50'000));
  Programs programs(world, threads, steps);
  if (u64 const given = number("MESHPOST_TEST_SEED", 0)) {
    programs.run(given);
    return;
  }
  u64 done = 0;
  while (done < operations && !testing::Test::HasFailure()) done += programs.run(seed++);
  testing::Test::RecordProperty("operations", std::to_string(done));
}

u64 any_seed() {
  return mixed(static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count()));
}

class RandomPrograms : public test::EveryShape {
 protected:
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  static constexpr u64 few = 2000;
#else
  static constexpr u64 few = 5000;
#endif
  static u64 operations() { return number("MESHPOST_TEST_OPERATIONS", few); }
};
INSTANTIATE_TEST_SUITE_P(Shapes, RandomPrograms, test::all_shapes(), test::shape_name);

TEST_P(RandomPrograms, leave_what_a_sequential_oracle_says) {
  run_and_compare(world, launch.threads, any_seed(), operations());
}

TEST_P(RandomPrograms, leave_the_same_when_steps_are_delayed_by_seed) {
  if (test::on_gpus()) GTEST_SKIP() << "hooks are on CPU devices";
  u64 const seed = number("MESHPOST_TEST_SEED", any_seed());
  test::Delays const delays(seed, 8);
  run_and_compare(world, launch.threads, seed, operations() / 5);
  EXPECT_GT(delays.asked(), 0);
}

TEST_P(RandomPrograms, keep_the_delivery_rule) {
  if (test::on_gpus()) GTEST_SKIP() << "delivery is checked on CPU devices";
  auto wanted = test::options(GetParam().ranks, test::devices(GetParam().spread));
  wanted.check_delivery = true;
  World checked(wanted);
  run_and_compare(checked, launch.threads, 1, operations() / 5);
}

}  // namespace
}  // namespace meshpost
