// Runs of grids that fail, and what is wrong with them.
#include <meshpost/array/grid.hpp>
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "support/errors.hpp"
#include "support/job.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

/// Makes one value that is no number, at a step.
struct Spoils {
  Cell where;
  u64 step;

  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime at) const {
    auto const u = fields.old(at.step % 2);
    auto const next = fields[1 - at.step % 2];
    threads.each(box, [&](i64 x, i64 y, i64 z) {
      bool const spoils = at.step == step && Cell{x, y, z} == where;
      next(x, y, z) = spoils ? u(x, y, z) / 0.0 * 0.0 : u(x, y, z);
    });
  }
};

TEST(GridRuns, name_cell_and_step_of_a_value_that_is_no_number) {
  World world(test::options(3, test::devices(test::Spread::several_devices)));
  Grid<double> grid(world, {.extents = {7, 5, 6}, .name = "pot"});
  auto const run = [&](u64 check_every, GridExecution execution = GridExecution::one_kernel) {
    for (u32 field = 0; field < 2; ++field) grid.fill(field, [](Cell) { return 1.0; });
    grid.run(Spoils{{3, 4, 5}, 4}, 6,
             {.execution = execution, .first_step = 0, .check_every = check_every});
  };
  EXPECT_TRUE(says(error_of([&] { run(1, GridExecution::kernel_a_step); }), Kind::kernel_failed,
                   {"step 4", "(3, 4, 5)"}));
  EXPECT_TRUE(
      says(error_of([&] { run(1); }), Kind::kernel_failed, {"step 4", "'pot'", "(3, 4, 5)"}));
  EXPECT_TRUE(says(error_of([&] { run(3); }), Kind::kernel_failed,
                   {"step 5", "(3, 4, 5)", "every 3 steps"}));
  EXPECT_TRUE(says(error_of([&] { run(100); }), Kind::kernel_failed, {"step 5", "(3, 4, 5)"}));
  run(0);
}

/// A cell reads one that no exchange brings.
struct ReadsCorner {
  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime at) const {
    auto const u = fields.old(at.step % 2);
    auto const next = fields[1 - at.step % 2];
    threads.each(box, [&](i64 x, i64 y, i64 z) { next(x, y, z) = u(x + 1, y + 1, z); });
  }
};

TEST(GridRuns, show_cells_that_nobody_brings) {
  World world(test::options(2));
  auto const run = [&](bool corners) {
    Grid<double> grid(world, {.extents = {6, 6},
                              .corners = corners,
                              .boundary = {Boundary::periodic, Boundary::periodic}});
    grid.fill(0, [](Cell) { return 1.0; });
    grid.run(ReadsCorner(), 2, {.check_every = 1});
  };
  EXPECT_TRUE(says(error_of([&] { run(false); }), Kind::kernel_failed, {"no number"}));
  run(true);
}

struct ReadsFieldNine {
  MESHPOST_FN u32 reads(GridTime) const { return 9; }
  MESHPOST_FN void operator()(GridThreads const&, Box const&, GridFields<double> const&,
                              GridTime) const {}
};

/// Throws in a step, on CPU devices.
struct Throws {
  u64 step;
  MESHPOST_FN void operator()(GridThreads const&, Box const&, GridFields<double> const&,
                              GridTime at) const {
#if !defined(__CUDA_ARCH__)
    if (at.step == step) throw std::runtime_error("no more paper");
#endif
  }
};

TEST(GridRuns, name_what_a_scheme_has_thrown_and_may_follow_it) {
  World world(test::options(1, test::devices(test::Spread::several_devices)));
  if (world.devices().front()->kind() != "cpu") GTEST_SKIP() << "kernels on GPUs throw nothing";
  Grid<double> grid(world, {.extents = {6, 6}});
  for (auto const execution : {GridExecution::one_kernel, GridExecution::kernel_a_step}) {
    auto const run = [&](u64 step) {
      grid.run(Throws{step}, 3, {.execution = execution, .first_step = 0, .check_every = 0});
    };
    EXPECT_TRUE(says(error_of([&] { run(1); }), Kind::kernel_failed, {"no more paper"}));
    run(9);
  }
}

/// Each part's cells become the number of steps, the last part's late.
struct Late {
  i64 from;
  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime at) const {
    auto const u = fields.old(at.step % 2);
    auto const next = fields[1 - at.step % 2];
#if !defined(__CUDA_ARCH__)
    if (box.begin.x >= from) std::this_thread::sleep_for(std::chrono::milliseconds(100));
#endif
    threads.each(box, [&](i64 x, i64 y, i64 z) {
      next(x, y, z) = (u(x, y, z) + 1) / (at.step == 2 && x >= from ? 0.0 : 1.0);
    });
  }
};

struct Meets {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

test::Role const grids("grids_in_a_job", [] {
  World world(test::world_options());
  Grid<double> grid(world, {.extents = {8}});
  auto const run = [&](u64 steps) {
    grid.fill(0, [](Cell) { return 0.0; });
    grid.run(Late{4}, steps, {.execution = GridExecution::kernel_a_step, .first_step = 0});
  };
  for (int i = 0; i < 2; ++i) {
    run(2);
    for (u32 part = 0; part < 2; ++part)
      for (double const value : grid.read(0, part))
        test::require(value == 2, "part " + std::to_string(part) + " was not read too early");
    world.run(Meets());  // before anybody stores other values
    test::print_error([&] { run(3); });
  }
  u32 const fields = world.process() == 0 ? 99 : 2;
  test::print_error([&] { Grid<double>(world, {.extents = {8}, .fields = fields}); });
});

TEST(JobGrids, end_and_fail_in_all_processes_together) {
  test::Job job("grids_in_a_job", 2);
  auto const& all = job.wait();
  test::expect_well(all);
  for (auto const& one : all)
    test::expect_in_order(one.out, {"step 2", ", 0, 0)", "step 2", ", 0, 0)", "99 fields"});
}

struct WritesFieldNine {
  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime) const {
    auto const far = fields[9];
    threads.each(box, [&](i64 x, i64 y, i64 z) { far(x, y, z) = 1; });
  }
};

TEST(GridMisuse, of_a_field_in_a_scheme_ends_the_run_on_cpu_devices) {
  World world(test::options(1));
  if (world.devices().front()->kind() != "cpu") GTEST_SKIP() << "GPUs don't check it";
  Grid<double> grid(world, {.extents = {6, 6}});
  for (auto const execution : {GridExecution::one_kernel, GridExecution::kernel_a_step})
    EXPECT_TRUE(says(error_of([&] { grid.run(WritesFieldNine(), 1, {.execution = execution}); }),
                     Kind::kernel_failed, {"field 9 of 2"}));
}

TEST(GridRuns, show_a_field_that_was_never_filled) {
  World world(test::options(1));
  Grid<double> grid(world, {.extents = {6, 6}});
  EXPECT_TRUE(says(error_of([&] { grid.run(ReadsCorner(), 1); }), Kind::kernel_failed,
                   {"no number", "filled"}));
}

TEST(GridMisuse, is_an_error_with_the_numbers) {
  World world(test::options(2));
  Grid<double> grid(world, {.extents = {8, 8}, .name = "pot"});
  EXPECT_TRUE(says(error_of([&] { grid.read(2, 0); }), Kind::bad_argument, {"field 2", "has 2"}));
  EXPECT_TRUE(says(error_of([&] { grid.fill(3, [](Cell) { return 0.0; }); }), Kind::bad_argument,
                   {"Grid::fill", "field 3"}));
  std::vector<double> const few(5);
  EXPECT_TRUE(
      says(error_of([&] { grid.write(0, 0, few); }), Kind::bad_argument, {"5 values", "part 0"}));
  Grid<double> freed(world, {.extents = {8}, .name = "gone"});
  freed.free();
  EXPECT_TRUE(says(error_of([&] { freed.run(ReadsCorner(), 1); }), Kind::misuse,
                   {"Grid::run", "'gone' was freed"}));
  EXPECT_TRUE(says(error_of([&] { grid.write(0, world.device_count(), few); }), Kind::bad_argument,
                   {"Grid::write", "of grid 'pot'; this process has parts 0"}));
  std::optional<World> passing(std::in_place, test::options(1));
  Grid<double> left(*passing, {.extents = {8}});
  passing.reset();
  EXPECT_TRUE(says(error_of([&] { left.run(ReadsCorner(), 1); }), Kind::misuse,
                   {"Grid::run", "keep the World alive"}));
  EXPECT_TRUE(says(error_of([&] { left.free(); }), Kind::misuse, {"Grid::free", "keep the World"}));
  EXPECT_TRUE(says(error_of([&] { grid.read(0, 77); }), Kind::bad_argument, {"77"}));
  EXPECT_TRUE(says(error_of([&] { grid.run(ReadsFieldNine(), 1); }), Kind::kernel_failed,
                   {"reads()", "field"}));
  EXPECT_TRUE(says(error_of([&] { Grid<double>(world, {.extents = {8}, .fields = 65}); }),
                   Kind::bad_argument, {"65 fields", "64"}));
  EXPECT_TRUE(says(error_of([&] {
                     Grid<double>(world, {.extents = {8}, .shares = {1, 2, 3, 4, 5, 6, 7, 8, 9}});
                   }),
                   Kind::bad_argument, {"9 shares"}));
  EXPECT_TRUE(says(error_of([&] {
                     Grid<double>(world,
                                  {.extents = {3}, .halo = 4, .boundary = {Boundary::periodic}});
                   }),
                   Kind::bad_argument, {"4", "3"}));
}

TEST(GridValues, that_were_written_are_read) {
  World world(test::options(1, test::devices(test::Spread::several_devices)));
  Grid<float> grid(world, {.extents = {5, 4, 3}, .components = 2});
  for (u32 part = 0; part < world.device_count(); ++part) {
    std::vector<float> values(grid.box(part).cells() * 2);
    for (u64 i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + part);
    grid.write(1, part, values);
    EXPECT_EQ(grid.read(1, part), values);
  }
}

TEST(GridShares, follow_measured_speeds) {
  World world(test::options(2, test::devices(test::Spread::several_devices)));
  GridOptions const options{.extents = {64, 32, 16}, .boundary = {Boundary::periodic}};
  auto const shares =
      measured_shares<double>(world, options, Spoils{{}, 1000}, [](Grid<double>& grid) {
        for (u32 field = 0; field < 2; ++field) grid.fill(field, [](Cell) { return 1.0; });
      });
  ASSERT_EQ(shares.size(), world.device_count());
  for (double const share : shares) EXPECT_TRUE(share > 0 && std::isfinite(share));
}

}  // namespace
}  // namespace meshpost
