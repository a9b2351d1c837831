// The force, a step of one particle, how segments are cut, and errors of the version of two models.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "particles/versions.hpp"

namespace particles {
namespace {

Options small() {
  Options options;
  options.devices = "cpu:2";
  options.width = 20, options.length = 24, options.particles = 480, options.seed = 1;
  return options;
}

Model<float> model() { return make_problem(small(), 2).model<float>(); }

Vector<float> force(float dx, float dy) {
  Vector<float> sum{0, 0};
  add_force(model(), dx, dy, sum);
  return sum;
}

TEST(Force, is_zero_at_one_point_and_from_the_cutoff_on) {
  for (auto const [dx, dy] : {std::pair{0.F, 0.F}, {1.F, 0.F}, {0.F, -1.F}, {0.8F, 0.7F}}) {
    EXPECT_EQ(force(dx, dy).x, 0);
    EXPECT_EQ(force(dx, dy).y, 0);
  }
}

TEST(Force, is_finite_and_points_away_however_near_the_other_is) {
  for (float distance = 1; distance > 0; distance /= 2) {
    auto const f = force(distance, -distance);
    EXPECT_TRUE(std::isfinite(f.x) && std::isfinite(f.y)) << distance;
    EXPECT_GE(f.x, 0) << distance;
    EXPECT_EQ(f.x, -f.y) << distance;
  }
}

TEST(Force, is_minus_the_slope_of_the_potential) {
  auto const problem = make_problem(small(), 1);
  auto const potential = [&](double r) {
    State const two{{5, 0.25, 0, 0, 3}, {5 + r, 0.25, 0, 0, 3}};
    return energy_of(problem, two).potential;
  };
  for (double const r : {0.1, 0.5, 0.9}) {
    Vector<double> sum{0, 0};
    add_force(problem.model<double>(), r, 0.0, sum);
    EXPECT_NEAR(sum.x, -(potential(r + 1e-5) - potential(r - 1e-5)) / 2e-5, 1e-6);
  }
}

TEST(Move, walls_reflect_and_edges_of_segments_do_not) {
  auto const flies = [](float x, float y, float vx, float vy, u32 segment) {
    return move(model(), {x, y, vx, vy}, {0.F, 0.F}, segment);
  };
  auto const left = flies(0.25F, 0.5F, -50, 0, 3);  // 0.5 in a step of 0.01
  EXPECT_FLOAT_EQ(left.particle.x, 0.25F);
  EXPECT_FLOAT_EQ(left.particle.vx, 50);
  EXPECT_FLOAT_EQ(flies(19.75F, 0.5F, 50, 0, 3).particle.x, 19.75F);
  auto const bottom = flies(5, 0.25F, 0, -50, 0);
  EXPECT_EQ(bottom.way, 0);
  EXPECT_FLOAT_EQ(bottom.particle.y, 0.25F);
  EXPECT_FLOAT_EQ(flies(5, 0.75F, 0, 50, 47).particle.y, 0.75F);
  auto const down = flies(5, 0.25F, 0, -50, 1), up = flies(5, 0.75F, 0, 50, 46);
  EXPECT_EQ(down.way, -1);
  EXPECT_FLOAT_EQ(down.particle.y, 0.75F);
  EXPECT_FLOAT_EQ(down.particle.vy, -50);
  EXPECT_EQ(up.way, 1);
  EXPECT_FLOAT_EQ(up.particle.y, 0.25F);
}

TEST(Move, a_step_over_a_segment_and_a_value_that_is_no_number_are_too_far) {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(move(model(), {5, 0, 0, 100}, {0.F, 0.F}, 3).far);
  EXPECT_TRUE(move(model(), {5, 0, 0, 101}, {0.F, 0.F}, 3).far);
  EXPECT_TRUE(move(model(), {5, 0, -101, 0}, {0.F, 0.F}, 3).far);
  EXPECT_TRUE(move(model(), {5, 0, 0, 0}, {0.F, nan}, 3).far);
}

TEST(Shape, each_segment_has_one_owner_and_each_owner_two_segments) {
  for (u32 const devices : {1u, 2u, 3u, 8u})
    for (u32 const ranks : {1u, 3u, 16u, 132u})
      for (u32 const segments : {2 * devices, 2 * devices + 1, 53u, 416 * devices}) {
        Shape const shape{segments, devices, ranks, 5};
        u32 next = 0, last = Shape::none;
        for (u32 r = 0; r < devices * ranks; ++r) {
          Range const own = shape.of_rank(r);
          if (own.size() == 0) continue;
          EXPECT_EQ(own.begin, next);
          EXPECT_GE(own.size(), halo);
          EXPECT_EQ(shape.below(r), last);
          if (last != Shape::none) {
            EXPECT_EQ(shape.above(last), r);
          }
          next = own.end, last = r;
        }
        EXPECT_EQ(next, segments);
        EXPECT_EQ(shape.above(last), Shape::none);
      }
}

// The error of the version of two models, and that of the one kernel.
std::pair<std::string, std::string> errors(Options const& options) {
  meshpost::World world(meshpost::apps::world_of(options));
  Versions<float> versions(world, make_problem(options, world.device_count()));
  auto const exchange = meshpost::apps::make_exchange("copies", world, versions.memories());
  exchange->prepare(versions.steps(), [&](u32 step) { versions.step(*exchange, step); });
  versions.reset();
  exchange->play();
  std::pair<std::string, std::string> all;
  try {
    versions.result();
  } catch (meshpost::Error const& error) {
    all.first = error.what();
  }
  versions.reset();
  try {
    versions.run_kernel({});
  } catch (meshpost::Error const& error) {
    all.second = error.what();
  }
  return all;
}

TEST(Versions, name_the_particle_that_goes_too_far) {
  Options options = small();
  options.dt = 0.5;
  auto const [plain, kernel] = errors(options);
  auto const names = testing::MatchesRegex(
      "--dt 0.5: particle [0-9]+ of segment [0-9]+ went 1.[0-9]+ in step [0-9]+, and 1 is the "
      "limit; choose a smaller one.*");
  EXPECT_THAT(plain, names);
  EXPECT_THAT(kernel, names);
}

TEST(Versions, name_the_segment_that_gets_too_full) {
  Options options = small();
  options.capacity = 64, options.particles = 1100, options.speed = 9, options.strength = 0;
  options.steps = 600;
  auto const [plain, kernel] = errors(options);
  auto const names = testing::MatchesRegex(
      "--capacity 64: segment [0-9]+ gets [0-9]+ particles in step [0-9]+; choose a larger one.*");
  EXPECT_THAT(plain, names);
  EXPECT_THAT(kernel, names);
}

}  // namespace
}  // namespace particles
