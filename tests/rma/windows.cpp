// Kinds of windows: uniform, sized by rank, overlapping, over memory of the user, over a split;
// read and written by the host.
#include <numeric>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

struct Fill {  // each rank numbers its part, then puts its first element to the next rank's last
               // one
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = window.local(self);
    self.each(mine.size(), [&](u64 i) { mine[i] = static_cast<u32>(1000 * (self.id() + 1) + i); });
  }
};

struct PassFirst {
  Window<u32> window;
  u32 last;  // elements of a part, less one
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    u64 const at = window.local(self).size() == 0 ? 0 : last;
    self.put_notify(window.at(next, at), window.local(self).subspan(0, 1), Tag{0});
    self.wait(window, Tag{0});
  }
};

// Parts of a device share one block: [halo | own | halo], where a halo is the neighbour's own edge.
// In a put of an edge to a neighbour on the same device, source and target are the same.
struct Shift {
  Window<u32> field;
  u32 own, rounds;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    auto const mine = field.local(self);
    bool const has_left = self.id() > 0, has_right = self.id() + 1 < n;
    RankId const left{self.id() - 1}, right{self.id() + 1};
    for (u32 round = 0; round < rounds; ++round) {
      self.each(own,
                [&](u64 i) { mine[1 + i] = static_cast<u32>(test::mixed(self.id(), round, i)); });
      if (has_right) self.put_notify(field.at(right, 0), mine.subspan(own, 1), Tag{0});
      if (has_left) self.put_notify(field.at(left, own + 1), mine.subspan(1, 1), Tag{1});
      if (has_left) {
        self.wait(field, Tag{0}, 1, left);
        findings.add(self, mine[0] != static_cast<u32>(test::mixed(self.id() - 1, round, own - 1)));
      }
      if (has_right) {
        self.wait(field, Tag{1}, 1, right);
        findings.add(self, mine[own + 1] != static_cast<u32>(test::mixed(self.id() + 1, round, 0)));
      }
      self.barrier();
    }
  }
};

struct InGroups {  // over a split: ranks count in their group
  Communicator half;
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(half), me = self.id(half);
    if (n == 0) return;
    auto const mine = window.local(self);
    if (self.thread() == 0) mine[1] = self.id() + 1;
    self.put_notify(window.at(RankId{(me + 1) % n}), mine.subspan(1, 1), Tag{0});
    self.wait(window, Tag{0}, 1, self.world_rank(half, RankId{(me + n - 1) % n}));
  }
};

class Windows : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Windows, test::all_shapes(), test::shape_name);

TEST_P(Windows, start_at_zero_and_are_written_and_read_by_the_host) {
  auto const window = world.window<double>(5, Tags{0});
  for (u32 r = 0; r < world.size(); ++r) {
    EXPECT_EQ(window.read(RankId{r}), std::vector<double>(5, 0.0));
    window.write(RankId{r}, 2, std::vector<double>{r + 0.5, r + 0.25});
  }
  std::vector<double> two(2);
  for (u32 r = 0; r < world.size(); ++r) {
    EXPECT_EQ(window.read(RankId{r}), (std::vector<double>{0, 0, r + 0.5, r + 0.25, 0}));
    window.read(RankId{r}, 3, two);
    EXPECT_EQ(two, (std::vector<double>{r + 0.25, 0}));
    window.read(RankId{r}, 5, std::span<double>());  // nothing, at the end
  }
}

TEST_P(Windows, may_have_parts_of_any_size) {
  u32 const each = world.ranks_per_device();
  std::vector<Extent> parts;
  for (u32 r = 0; r < world.size(); ++r)
    parts.push_back({(r % each) * 100, r % 7 == 3 ? 0 : 1 + r % 100});
  auto const window = world.window<u32>(parts);
  world.run(Fill{window}, launch);
  for (u32 r = 0; r < world.size(); ++r) {
    std::vector<u32> expected(parts[r].count);
    std::iota(expected.begin(), expected.end(), 1000 * (r + 1));
    EXPECT_EQ(window.read(RankId{r}), expected);
  }
}

TEST_P(Windows, may_overlap_so_that_neighbours_share_their_edges) {
  u32 const own = 10, each = world.ranks_per_device();
  std::vector<Extent> parts;
  for (u32 r = 0; r < world.size(); ++r) parts.push_back({(r % each) * own, own + 2});
  auto const findings = test::make_findings(world);
  EXPECT_TRUE(
      world.run(Shift{world.window<u32>(parts), own, 20, findings}, launch).unconsumed.empty());
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(Windows, may_be_memory_of_the_user) {
  u32 const each = world.ranks_per_device(), size = 6;
  std::vector<Allocation> memory;
  std::vector<std::span<u32>> parts;
  for (auto const& device : world.devices()) {
    memory.push_back(device->allocate(Bytes{each * size * sizeof(u32)}, MemoryKind::device));
    for (u32 r = 0; r < each; ++r) parts.emplace_back(memory.back().as<u32>() + r * size, size);
  }
  auto const window = world.register_memory(parts, Tags{2}, "mine");
  world.run(Fill{window}, launch);
  world.run(PassFirst{window, size - 1}, launch);
  u32 const n = world.size();
  for (u32 r = 0; r < n; ++r) {
    auto const values = window.read(RankId{r});
    u32 const from = 1000 * ((r + n - 1) % n + 1);
    EXPECT_EQ(values.back(), n == 1 ? 1000 : from);
    std::vector<u32> raw(size);
    u32 const device = r / each;
    world.devices()[device]->read(raw.data(), memory[device].as<u32>() + (r % each) * size,
                                  Bytes{size * sizeof(u32)});
    EXPECT_EQ(values, raw);
  }
  world.free(window);
}

TEST_P(Windows, over_a_split_count_ranks_in_their_group) {
  auto const half =
      world.split(world.communicator(), [](RankId r) { return r % 3 == 2 ? -1 : i64{r % 3}; });
  auto const window = world.window<u32>(half, 2);
  world.run(InGroups{half, window}, launch);
  std::vector<std::vector<u32>> groups(2);
  for (u32 r = 0; r < world.size(); ++r)
    if (r % 3 != 2) groups[r % 3].push_back(r);
  for (auto const& group : groups)
    for (std::size_t i = 0; i < group.size(); ++i)
      EXPECT_EQ(window.read(RankId{group[i]})[0], group[(i + group.size() - 1) % group.size()] + 1);
}

// Ranks then compute where a part lies. Otherwise each operation loads it.
TEST(Window, needs_a_table_only_if_its_parts_differ) {
  World world(test::options(3));
  auto const needs_table = [&](auto const& extent_of) {
    std::vector<Extent> extents;
    for (u32 rank = 0; rank < world.size(); ++rank) extents.push_back(extent_of(rank % 3, rank));
    auto const window = world.window<u32>(extents, Tags{1});
    bool const needs = window.info().parts != 0;
    world.free(window);
    return needs;
  };
  EXPECT_FALSE(needs_table([](u32, u32) { return Extent{0, 5}; })) << "one part for all";
  EXPECT_FALSE(needs_table([](u32 local, u32) { return Extent{local * 4, 6}; })) << "overlapping";
  EXPECT_TRUE(needs_table([](u32 local, u32) { return Extent{local * local, 6}; }));
  EXPECT_TRUE(needs_table([](u32 local, u32) { return Extent{local * 4, 6 + local}; }));
  EXPECT_TRUE(needs_table([](u32 local, u32) { return Extent{local * 4 + 1, 6}; }));
  EXPECT_EQ(needs_table([](u32 local, u32 rank) { return Extent{local * 4, 6 + rank / 3}; }),
            world.device_count() > 1);  // three ranks a device
}

TEST(Window, is_used_again_after_it_was_freed) {
  World world(test::options(2));
  u64 const count = (u64{8} << 20) / world.size();  // larger than the heap's first piece
  auto const first = world.window<u8>(count);
  auto const offset = first.info().offset;
  world.free(first);
  for (int i = 0; i < 20; ++i) {
    auto const next = world.window<u8>(count);
    EXPECT_EQ(next.info().offset, offset);
    world.free(next);
  }
}

TEST(Window, can_be_larger_than_the_heap_was) {
  World world(test::options(1));
  auto const small = world.window<u32>(10);
  small.write(RankId{0}, 0, std::vector<u32>(10, 7));
  auto const large = world.window<u32>(10'000'000);
  large.write(RankId{world.size() - 1}, 9'999'999, std::vector<u32>{42});
  EXPECT_EQ(small.read(RankId{0}), std::vector<u32>(10, 7));
  EXPECT_EQ(large.read(RankId{world.size() - 1}).back(), 42u);
}

TEST(Window, reads_and_writes_only_what_is_there) {
  World world(test::options(2));
  auto const window = world.window<u32>(10, Tags{1}, "numbers");
  std::vector<u32> four(4);
  auto const n = std::to_string(world.size());
  EXPECT_TRUE(
      says(error_of([&] { window.read(RankId{1}, 7, four); }), Kind::bad_argument,
           {"read window 'numbers'", "elements 7 to 10", "rank 1, which has 10", "stay inside"}));
  EXPECT_TRUE(says(error_of([&] { window.write(RankId{0}, 11, four); }), Kind::bad_argument,
                   {"elements 11 to 14", "which has 10"}));
  EXPECT_TRUE(says(error_of([&] { window.write(RankId{0}, ~u64{0} - 1, four); }),
                   Kind::bad_argument, {"beyond 2^64", "which has 10"}));
  EXPECT_TRUE(says(error_of([&] { window.write(RankId{world.size()}, 0, four); }),
                   Kind::bad_argument,
                   {"rank " + n + " does not exist", n + " ranks", "use ranks from 0 to"}));
  EXPECT_TRUE(says(error_of([&] { window.read(RankId{99}); }), Kind::bad_argument, {"rank 99"}));
}

TEST(Window, that_was_freed_is_refused_by_the_host) {
  World world(test::options(2));
  auto const window = world.window<u32>(10);
  world.free(window);
  EXPECT_TRUE(says(error_of([&] { world.free(window); }), Kind::bad_argument,
                   {"free", "was freed before"}));
  EXPECT_TRUE(says(error_of([&] { window.read(RankId{0}); }), Kind::bad_argument,
                   {"read", "was freed before"}));
}

TEST(Window, of_another_world_is_refused_by_the_host) {
  World world(test::options(1)), other(test::options(1));
  auto const window = other.window<u32>(10);
  EXPECT_TRUE(
      says(error_of([&] { world.free(window); }), Kind::bad_argument, {"free", "does not exist"}));
  EXPECT_TRUE(says(error_of([&] { world.free(Window<u32>()); }), Kind::bad_argument,
                   {"free", "never made", "World::window"}));
  EXPECT_TRUE(says(error_of([&] { world.window<u32>(other.communicator(), 1); }),
                   Kind::bad_argument, {"communicator belongs to world"}));
}

TEST(Window, does_not_outlive_its_world) {
  Window<u32> window;
  {
    World world(test::options(1));
    window = world.window<u32>(10);
  }
  EXPECT_TRUE(says(error_of([&] { window.read(RankId{0}); }), Kind::misuse,
                   {"read", "world", "keep the World alive"}));
  EXPECT_TRUE(says(error_of([&] { window.write(RankId{0}, 0, std::vector<u32>{1}); }), Kind::misuse,
                   {"write"}));
  EXPECT_TRUE(says(error_of([&] { Window<u32>().read(RankId{0}); }), Kind::misuse,
                   {"read", "never made", "World::window"}));
}

TEST(Window, of_an_absurd_size_is_refused) {
  World world(test::options(2));
  for (u64 const count : {u64{1} << 60, u64{1} << 50, ~u64{0}, ~u64{0} / 8}) {
    auto const error = error_of([&] { world.window<double>(count); });
    EXPECT_TRUE(says(error, Kind::out_of_memory, {"window", "use smaller windows"})) << count;
  }
  EXPECT_TRUE(says(error_of([&] { world.window<double>(u64{1} << 60); }), Kind::out_of_memory,
                   {"1152921504606846976 elements of 8 bytes"}));
  std::vector<Extent> parts(world.size(), Extent{~u64{0} - 3, 8});
  EXPECT_TRUE(says(error_of([&] { world.window<u32>(parts); }), Kind::bad_argument,
                   {"8 elements", "smaller parts"}));
  world.window<double>(10);  // the World is still usable
}

TEST(Window, that_no_memory_is_left_for_is_refused_and_others_still_fit) {
  World world(test::options(1));
  u64 const most = world.window<u8>(1).info().count + world.devices().front()->info().memory.value;
  auto const error = error_of([&] { world.window<u8>(most); });
  EXPECT_TRUE(says(error, Kind::out_of_memory, {"smaller windows"}));
  auto const small = world.window<u32>(1000);
  small.write(RankId{0}, 999, std::vector<u32>{5});
  EXPECT_EQ(small.read(RankId{0})[999], 5u);
}

TEST(Window, has_a_limit_of_tags_and_one_part_for_each_rank) {
  World world(test::options(2));
  EXPECT_TRUE(says(error_of([&] { world.window<u32>(1, Tags{65537}); }), Kind::bad_argument,
                   {"65537 tags", "at most 65536", "use fewer"}));
  EXPECT_TRUE(says(error_of([&] { world.window<u32>(1, Tags{~0u}); }), Kind::bad_argument,
                   {"4294967295 tags"}));
  world.free(world.window<u32>(1, Tags{65536}));
  EXPECT_TRUE(says(error_of([&] { world.window<u32>(std::vector<Extent>(1)); }), Kind::bad_argument,
                   {"1 parts", std::to_string(world.size()) + " ranks", "one for each rank"}));
  EXPECT_TRUE(
      says(error_of([&] { world.register_memory(std::vector<std::span<u32>>(world.size() + 1)); }),
           Kind::bad_argument, {"parts were given"}));
}

TEST(Window, is_not_made_of_memory_that_its_device_cannot_use) {
  World world(test::options(1));
  std::vector<std::span<u32>> parts(world.size());
  parts[0] = {static_cast<u32*>(nullptr), 5};
  EXPECT_TRUE(says(
      error_of([&] { world.register_memory(parts); }), Kind::bad_argument,
      {"register_memory", "rank 0", "null pointer", "memory of " + world.devices()[0]->name()}));
  auto const small = world.devices()[0]->allocate(Bytes{40}, MemoryKind::device);
  parts[0] = {small.as<u32>(), 11};
  EXPECT_TRUE(says(error_of([&] { world.register_memory(parts); }), Kind::bad_argument,
                   {"11 elements of 4 bytes", "ends after 40 bytes"}));
  if (!test::on_gpus()) return;  // a CPU device uses any other memory
  std::vector<u32> host(100);
  parts[0] = host;
  EXPECT_TRUE(says(error_of([&] { world.register_memory(parts); }), Kind::bad_argument,
                   {"it is not memory of cuda:0"}));
  auto const few = world.devices()[0]->allocate(Bytes{40}, MemoryKind::device);
  parts[0] = {few.as<u32>(), 1u << 28};
  EXPECT_TRUE(says(error_of([&] { world.register_memory(parts); }), Kind::bad_argument,
                   {"its allocation ends after"}));
}

}  // namespace
}  // namespace meshpost
