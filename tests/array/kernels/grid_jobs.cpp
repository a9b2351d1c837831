// Grids of jobs whose processes differ: an error in all of them, which names the difference.
#include <meshpost/array/grid.hpp>

#include "support/job.hpp"

namespace meshpost {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

test::Role const differ("grids_that_differ", [] {
  World world(test::world_options());
  bool const first = world.process() == 0;
  GridOptions const same{.extents = {8, 8, 16}, .name = "field"};
  auto const refuse = [&](GridOptions const& other) {
    test::print_error([&] { Grid<double> grid(world, first ? same : other); });
  };
  auto one = same;
  one.extents.z = 12, one.fields = 3;
  refuse(one);
  one = same, one.fields = 3;
  refuse(one);
  one = same, one.components = 2;
  refuse(one);
  one = same, one.corners = true;
  refuse(one);
  one = same, one.boundary = {Boundary::periodic};
  refuse(one);
  one = same, one.shares.assign(world.device_count(), 1), one.shares[0] = 2;
  refuse(one);
  Grid<double> grid(world, same);
  // Windows whose parts differ have no grid that says it first.
  test::print_error([&] {
    std::vector<Extent> parts;
    for (u32 rank = 0; rank < world.size(); ++rank) parts.push_back({0, rank + (first ? 8u : 9u)});
    world.window<int>(parts, Tags{0}, "parts");
  });
  test::say("went on");
});

TEST(JobGrids, that_differ_are_refused_in_all_and_the_difference_is_named) {
  test::Job job("grids_that_differ", 2, {{"MESHPOST_DEVICES", "cpu:2"}, {"MESHPOST_RANKS", "16"}});
  auto const& all = job.wait();
  test::expect_well(all);
  for (auto const& one : all) {
    EXPECT_THAT(one.out, HasSubstr("make grid 'field': process 1 has 8 x 8 x 12 cells, and process "
                                   "0 has 8 x 8 x 16 cells; give all processes the same Grid"));
    EXPECT_THAT(one.out, HasSubstr("process 1 has 3 fields, and process 0 has 2 fields"));
    EXPECT_THAT(one.out, HasSubstr("process 1 has 2 components, and process 0 has 1 comp"));
    EXPECT_THAT(one.out, HasSubstr("cells with corners, and process 0 has a halo of 1+1"));
    EXPECT_THAT(one.out, HasSubstr("process 1 has the boundaries periodic, none, none, and"));
    EXPECT_THAT(one.out, HasSubstr("8 x 8 x 16 cells in 4 boxes of 192 to"));
    EXPECT_THAT(one.out, AllOf(HasSubstr("in parts: 1 of 0+9, 1 of 0+10"),
                               HasSubstr("and 60 more with check sum"), Not(HasSubstr("0+20"))));
    EXPECT_THAT(one.out, HasSubstr("went on"));
  }
}

}  // namespace
}  // namespace meshpost
