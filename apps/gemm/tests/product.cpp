#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "check.hpp"
#include "common/bf16.hpp"
#include "executor.hpp"
#include "measure.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/copy/copy.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost::gemm {
namespace {

using blas::Type;

class GemmProduct : public testing::Test {
 protected:
  void SetUp() override {
    generator_.seed(seed_);
    RecordProperty("seed", std::to_string(seed_));
  }
  u32 up_to(u32 most) { return static_cast<u32>(generator_() % most) + 1; }

  // As many as exist, at most as many as requested.
  Devices devices(u32 count) {
    char const* const kind = std::getenv("MESHPOST_TEST_DEVICES");
    if (!kind) return open_devices("cpu:" + std::to_string(count));
    auto all = open_devices(kind);
    all.resize(std::min<u64>(all.size(), count));
    return all;
  }
  bool has(Type type) {
    try {
      blas::require(devices(1).front()->kind(), type);
      return true;
    } catch (Error const&) {
      return false;
    }
  }

  std::random_device::result_type seed_ = std::random_device{}();
  std::mt19937_64 generator_;
  blas::Team team_{2};
};

double stored(Type type, double value) {
  if (type == Type::float64) return value;
  auto const single = static_cast<float>(value);
  return type == Type::bf16 ? static_cast<float>(blas::Bf16(single)) : single;
}

TEST_F(GemmProduct, is_that_of_three_loops_on_any_grid_in_every_type) {
  for (auto const type : {Type::float64, Type::float32, Type::tf32, Type::bf16}) {
    if (!has(type)) continue;
    for (u32 const count : {1u, 2u, 3u, 4u, 6u}) {
      auto const used = devices(count);
      auto grid = default_grid(static_cast<u32>(used.size()));
      if (generator_() % 2 != 0) std::swap(grid.rows, grid.columns);
      Problem const problem{6 + up_to(60), 6 + up_to(60), 6 + up_to(150), grid};
      auto const plan = make_plan(problem, {up_to(30), up_to(3)});
      Distributed a(used, grid, problem.m, problem.k, type);
      Distributed b(used, grid, problem.k, problem.n, type);
      Distributed c(used, grid, problem.m, problem.n, type);
      a.fill(seed_, team_);
      b.fill(seed_ + 1, team_);
      for (bool const peer : {true, false}) {
        Executor executor(plan, used, a, b, c, 2, peer);
        for (int run = 0; run < 3; ++run) {
          c.poison();
          executor.run();
          auto const result = c.read({0, problem.n}, team_);
          double const bound = tolerance(type, problem.k, problem.k);
          for (u64 j = 0; j < problem.n; ++j)
            for (u64 i = 0; i < problem.m; ++i) {
              double sum = 0;
              for (u64 k = 0; k < problem.k; ++k)
                sum += stored(type, element(seed_, i, k)) * stored(type, element(seed_ + 1, k, j));
              ASSERT_NEAR(result[j * problem.m + i], sum, bound)
                  << blas::name(type) << ", " << grid.rows << "x" << grid.columns << ", seed "
                  << seed_ << ", element " << i << ", " << j;
            }
        }
      }
    }
  }
}

TEST_F(GemmProduct, passes_its_checks_and_reports_what_it_did) {
  Options options;
  options.seed = seed_;
  options.repeat = 2;
  auto const used = devices(4);
  use_devices_for_copies(used);
  auto const grid = default_grid(static_cast<u32>(used.size()));
  for (auto const type : {Type::float64, Type::float32, Type::tf32, Type::bf16}) {
    if (!has(type)) continue;
    options.type = type;
    auto const figures = measure({131, 77, 190, grid}, options, {used}, [](auto const&) {});
    ASSERT_TRUE(figures.freivalds);
    EXPECT_TRUE(figures.passed()) << blas::name(type) << ", seed " << seed_;
    EXPECT_EQ(figures.equal.has_value(), used.size() > 1);
    EXPECT_EQ(figures.exchanged > 0, used.size() > 1);
    EXPECT_GT(figures.seconds, 0);
    EXPECT_GT(figures.alone.value_or(0), 0);
  }
}

// The checks must reject a result with one panel left out, one block swapped, one NaN, and the
// smallest error that they must see.
TEST_F(GemmProduct, checks_find_planted_errors) {
  auto const used = open_devices("cpu:1");
  u64 const n = 200;
  Problem const problem{n, n, n, {1, 1}};
  for (auto const type : {Type::float64, Type::float32}) {
    Distributed a(used, {1, 1}, n, n, type), b(used, {1, 1}, n, n, type);
    Distributed c(used, {1, 1}, n, n, type), right(used, {1, 1}, n, n, type);
    a.fill(seed_, team_);
    b.fill(seed_ + 1, team_);
    Executor(make_plan(problem, {}), used, a, b, right, 1, true).run();
    auto plan = make_plan(problem, {});
    Executor(plan, used, a, b, c, 1, true).run();
    auto const passes = [&] {
      bool const equal = compare(c, right, n, 1, team_).passed();
      bool const product = freivalds(c, n, seed_, seed_ + 1, 1, 2, team_).passed();
      EXPECT_EQ(equal, product) << "seed " << seed_;
      return equal && product;
    };
    EXPECT_TRUE(passes()) << "seed " << seed_;

    plan.devices[0].steps[0].k.count = n - 20;
    Executor(plan, used, a, b, c, 1, true).run();
    EXPECT_FALSE(passes()) << "a panel is missing";

    c.poison();
    EXPECT_FALSE(passes()) << "NaN";

    Executor(make_plan(problem, {}), used, b, a, c, 1, true).run();
    EXPECT_FALSE(passes()) << "B A, not A B";

    Executor(make_plan(problem, {}), used, a, b, c, 1, true).run();
    if (type == Type::float64) static_cast<double*>(c.block(0))[n + 3] += 1e-3;
    else static_cast<float*>(c.block(0))[n + 3] += 0.1f;
    EXPECT_FALSE(passes()) << "one element is wrong";
  }
}

TEST_F(GemmProduct, takes_the_last_result_as_the_next_left_operand) {
  auto const used = devices(4);
  auto const grid = default_grid(static_cast<u32>(used.size()));
  u64 const n = 90, k = 120;
  Distributed a(used, grid, n, k, Type::float64), b(used, grid, k, k, Type::float64);
  Distributed c(used, grid, n, k, Type::float64);
  a.fill(seed_, team_);
  b.fill(seed_ + 1, team_);
  Executor executor(make_plan({n, k, k, grid}, {16, 2}), used, a, b, c, 1, true);
  auto const passes = [&](u32 products) {
    return freivalds(executor.result(), k, seed_, seed_ + 1, 32, 2, team_, products).passed();
  };
  for (u32 products = 1; products <= 8; ++products) {
    if (products > 1) executor.reuse_result();
    executor.result().poison();
    executor.run();
    EXPECT_TRUE(passes(products)) << products << ", seed " << seed_;
    EXPECT_FALSE(passes(products + 1)) << products << ", seed " << seed_;
  }
  EXPECT_EQ(&executor.result(), &a);
  executor.result().poison();
  EXPECT_FALSE(passes(8));

  Distributed wide(used, grid, k, n, Type::float64), d(used, grid, n, n, Type::float64);
  EXPECT_THROW(Executor(make_plan({n, n, k, grid}, {}), used, a, wide, d, 1, true).reuse_result(),
               Error);
}

TEST_F(GemmProduct, does_halves_of_the_work_alone) {
  auto const used = devices(2);
  auto const grid = default_grid(static_cast<u32>(used.size()));
  Problem const problem{64, 64, 64, grid};
  Distributed a(used, grid, 64, 64, Type::float32), b(used, grid, 64, 64, Type::float32);
  Distributed c(used, grid, 64, 64, Type::float32);
  a.fill(1, team_);
  b.fill(2, team_);
  c.poison();
  Executor executor(make_plan(problem, {16, 2}), used, a, b, c, 1, true);
  executor.run(Work::fetches);
  for (double const value : c.read({0, 64}, team_)) ASSERT_TRUE(std::isnan(value));
  executor.run(Work::all);
  EXPECT_TRUE(freivalds(c, 64, 1, 2, 8, 2, team_).passed());
}

TEST(GemmMatrix, holds_the_same_numbers_on_every_grid) {
  blas::Team team(3);
  auto const used = open_devices("cpu:6");
  Distributed one(used, {1, 1}, 23, 31, Type::float32), other(used, {2, 3}, 23, 31, Type::float32);
  one.fill(9, team);
  other.fill(9, team);
  auto const all = one.read({0, 31}, team);
  EXPECT_EQ(all, other.read({0, 31}, team));
  auto const some = other.read({9, 5}, team);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 9 * 23));
  double sum = 0;
  for (double const value : all) {
    EXPECT_LE(std::abs(value), 1);
    sum += value;
  }
  EXPECT_LT(std::abs(sum), 100);  // of 713; a thirtieth is a standard deviation
}

TEST(GemmOptions, sizes_and_sweeps_are_read) {
  EXPECT_EQ(parse_size("12").k, 12u);
  auto const problem = parse_size("3,4,5");
  EXPECT_EQ(problem.m, 3u);
  EXPECT_EQ(problem.n, 4u);
  EXPECT_EQ(problem.k, 5u);
  EXPECT_EQ(parse_sweep("5,10:20:5,7"), (std::vector<u64>{5, 10, 15, 20, 7}));
  EXPECT_EQ(parse_sweep("seed").size(), 71u);
  EXPECT_EQ(parse_sweep("5,1:5:2"), (std::vector<u64>{5, 1, 3}));
  for (auto const* wrong : {"", "0", "-1", "3,4", "1e3", "99999999999999999999", "4 "})
    EXPECT_THROW(parse_size(wrong), Error) << wrong;
  for (auto const* wrong : {"", "5:1:1", "1:5", "1:5:0", "a", "1,,2"})
    EXPECT_THROW(parse_sweep(wrong), Error) << wrong;
}

TEST(Freivalds, tries_other_vectors_at_other_seeds_and_in_other_rounds) {
  std::set<std::vector<double>> seen;
  for (u64 seed = 0; seed < 8; ++seed)  // as measure() makes the two from one
    for (u32 round = 0; round < 2; ++round) {
      auto const signs = random_signs(2 * seed, 2 * seed + 1, round, 64);
      for (double const sign : signs) EXPECT_EQ(std::abs(sign), 1);
      EXPECT_EQ(signs, random_signs(2 * seed, 2 * seed + 1, round, 64));
      seen.insert(signs);
    }
  EXPECT_EQ(seen.size(), 16u);
}

}  // namespace
}  // namespace meshpost::gemm
