// Strided pieces: any layouts against a sequential oracle, and the face of a grid as users write
// it.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "support/errors.hpp"
#include "support/strided.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

u64 given_or_random_seed() {
  char const* const given = std::getenv("MESHPOST_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

struct Cell {  // no machine has a word of this size
  u32 a, b, c;
};

class Strided : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Strided, test::all_shapes(), test::shape_name);

TEST_P(Strided, pieces_of_any_layout_come_whole_and_in_order) {
  u64 const seed = given_or_random_seed();
  SCOPED_TRACE("MESHPOST_TEST_SEED=" + std::to_string(seed));
  for (u64 i = 0; i < 3; ++i) EXPECT_EQ(test::send_pieces<u64>(world, seed + i, launch), 0u);
}

TEST_P(Strided, elements_may_be_of_any_size) {
  u64 const seed = given_or_random_seed();
  SCOPED_TRACE("MESHPOST_TEST_SEED=" + std::to_string(seed));
  EXPECT_EQ(test::send_pieces<u8>(world, seed, launch), 0u);
  EXPECT_EQ(test::send_pieces<Cell>(world, seed, launch), 0u);
}

// The grids of ranks form a ring, along one direction after the other. Faces go from grid to grid.
struct Faces {
  Window<float> grid;  // a layer of halo on every side
  test::Findings findings;
  static constexpr u64 nx = 7, ny = 5, nz = 6;
  MESHPOST_FN static float value(u32 rank, u64 place) {
    return static_cast<float>(test::mixed(rank, place) % 100'000);
  }
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    RankId const next{(self.id() + 1) % n}, previous{(self.id() + n - 1) % n};
    auto const mine = grid.local(self);
    self.each(mine.size(), [&](u64 i) { mine[i] = value(self.id(), i); });
    self.barrier();  // no rank puts before the target has filled its grid
    constexpr auto all = StridedLayout::dense({nx, ny, nz});
    constexpr StridedLayout halos[] = {all.subarray({0, 1, 1}, {1, ny - 2, nz - 2}),
                                       all.subarray({1, 0, 1}, {nx - 2, 1, nz - 2}),
                                       all.subarray({1, 1, 0}, {nx - 2, ny - 2, 1})};
    constexpr StridedLayout faces[] = {all.subarray({nx - 2, 1, 1}, {1, ny - 2, nz - 2}),
                                       all.subarray({1, ny - 2, 1}, {nx - 2, 1, nz - 2}),
                                       all.subarray({1, 1, nz - 2}, {nx - 2, ny - 2, 1})};
    for (u32 d = 0; d < 3; ++d)
      self.put_notify(grid.at(next).strided(halos[d]), mine.strided(faces[d]), Tag{0});
    self.wait(grid, Tag{0}, 3);
    if (self.thread() != 0) return;
    for (u32 d = 0; d < 3; ++d)
      test::each_element(halos[d], faces[d], [&](u64 here, u64 there) {
        findings.add(self, mine[here] != value(previous, there));
      });
    findings.add(self, mine[nx * ny + nx + 1] != value(self.id(), nx * ny + nx + 1));
  }
};

TEST_P(Strided, faces_of_a_grid_go_into_the_halos_of_another) {
  auto const findings = test::make_findings(world);
  auto const grid = world.window<float>(Faces::nx * Faces::ny * Faces::nz, Tags{1}, "grid");
  world.run(Faces{grid, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

struct NothingMoves {
  Window<u32> window;  // 24 elements
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = window.local(self);
    self.each(24, [&](u64 i) { mine[i] = static_cast<u32>(i); });
    auto const grid = StridedLayout::dense({4, 3, 2});
    auto const none = grid.subarray({4, 0, 0}, {0, 3, 2}),
               face = grid.subarray({3, 0, 0}, {1, 3, 2});
    RankId const next{(self.id() + 1) % self.size()};
    self.put(window.at(next).strided(none), mine.strided(none));
    self.put_notify(window.at(next).strided(none), mine.strided(none), Tag{0});
    self.put_notify(window.at(next), mine.strided(none), Tag{0});
    self.put_notify(window.at(next, 24).strided(none), LocalSpan<u32 const>{}, Tag{0});
    self.put_notify(window.at({self.id()}).strided(face), mine.strided(face), Tag{0});
    self.wait(window, Tag{0}, 4);
  }
};

TEST_P(Strided, pieces_of_nothing_and_those_in_place_only_notify) {
  auto const window = world.window<u32>(24);
  world.run(NothingMoves{window}, launch);
  std::vector<u32> expected(24);
  for (u32 i = 0; i < 24; ++i) expected[i] = i;
  for (u32 r = 0; r < world.size(); ++r) EXPECT_EQ(window.read(RankId{r}), expected);
}

TEST(StridedPut, is_one_put_of_all_its_bytes_on_a_timeline) {
  auto const file = testing::TempDir() + "strided" + std::to_string(getpid()) + ".json";
  World world(test::options(2, test::devices(test::Spread::one_device)));
  auto const grid = world.window<float>(Faces::nx * Faces::ny * Faces::nz, Tags{1}, "grid");
  world.run(Faces{grid, test::make_findings(world)}, {.trace = file});
  std::ifstream in(file);
  auto const json = nlohmann::json::parse(in);
  std::filesystem::remove(file);
  std::vector<u64> bytes;
  for (auto const& event : json["traceEvents"])
    if (event["name"] == "put_notify") bytes.push_back(event["args"]["bytes"]);
  std::sort(bytes.begin(), bytes.end());
  EXPECT_EQ(bytes, (std::vector<u64>{48, 48, 60, 60, 80, 80}));  // 4 of 3 * 4, 5 * 3 and 5 * 4
}

// -- checked delivery, on CPU devices

WorldOptions checked(u32 ranks) {
  auto wanted = test::options(ranks, "cpu:1");
  wanted.check_delivery = true;
  return wanted;
}

TEST(StridedCpuOnly, pieces_keep_the_delivery_rule) {
  World world(checked(4));
  for (u64 seed = 1; seed < 4; ++seed) {
    EXPECT_EQ(test::send_pieces<u64>(world, seed), 0u);
    EXPECT_EQ(test::send_pieces<u64>(world, seed, {.threads = {3, 1, 1}}), 0u);
  }
}

// Rank 0 puts every second element of rank 1, which reads and stores there before it waits.
struct TouchEarly {
  Window<u32> window, seen;  // 8 elements
  u32 touched;
  MESHPOST_FN void operator()(Rank& self) const {
    StridedLayout const even{.extents = {4}, .strides = {2}};
    auto const mine = window.local(self);
    if (self.id() == 0) {
      self.put_notify(window.at(RankId{1}).strided(even), mine.subspan(0, 4), Tag{0});
      self.barrier();
      return;
    }
    self.barrier();
    for (u32 i = 0; i < 8; ++i) seen.local(self)[i] = mine[i];
    mine[touched] = 7;
    self.wait(window, Tag{0});
  }
};

TEST(StridedCpuOnly, pieces_are_delivered_at_consumption_and_the_gaps_between_them_stay_free) {
  World world(checked(2));
  auto const window = world.window<u32>(8, Tags{1}, "board"), seen = world.window<u32>(8);
  world.run(TouchEarly{window, seen, 3});
  EXPECT_EQ(seen.read(RankId{1}), (std::vector<u32>{~0u, 0, ~0u, 0, ~0u, 0, ~0u, 0}));
  EXPECT_EQ(window.read(RankId{1})[3], 7u);
  EXPECT_TRUE(says(error_of([&] { world.run(TouchEarly{window, seen, 4}); }), Kind::kernel_failed,
                   {"on rank 1", "somebody overwrote window 'board' of rank 1 at element 4"}));
}

struct ReadEarly {  // rank 0 forwards bytes that it has received but not consumed
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const face = StridedLayout::dense({2, 4}).subarray({1, 0, 0}, {1, 4});
    auto const mine = window.local(self);
    if (self.id() == 1) self.put_notify(window.at(RankId{0}, 5), mine.subspan(0, 1), Tag{0});
    self.barrier();
    if (self.id() == 0) self.put_notify(window.at(RankId{1}), mine.strided(face), Tag{0});
  }
};

TEST(StridedCpuOnly, a_source_that_has_an_undelivered_element_is_named) {
  World world(checked(2));
  auto const window = world.window<u32>(8, Tags{1}, "board");
  EXPECT_TRUE(
      says(error_of([&] { world.run(ReadEarly{window}); }), Kind::kernel_failed,
           {"put_notify in", "rank 0 reads window 'board' of rank 0 at element 5", "rank 1 has"}));
}

}  // namespace
}  // namespace meshpost
