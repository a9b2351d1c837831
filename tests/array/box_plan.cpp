// Plans from boxes: carried out by their entries, they fill each frame as a look at each cell says.
#include <meshpost/array/plan.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "array/box_cases.hpp"
#include "array/refused.hpp"

namespace meshpost {
namespace {

using test::BoxCase;
using test::expect_refused;
using testing::ElementsAre;

// Carries the plan out, entry by entry.
std::vector<std::vector<u64>> played(BoxCase const& one, Plan const& plan) {
  std::vector<std::vector<u64>> before, after;
  for (u32 part = 0; part < plan.part_count(); ++part) before.push_back(one.expected(part, true));
  after = before;
  u64 entries = 0;
  for (u32 part = 0; part < plan.part_count(); ++part) {
    auto const& here = plan.of(part);
    EXPECT_EQ(here.size(), before[part].size());
    u64 next = 0;
    for (auto const& entry : here.receives) {
      EXPECT_EQ(entry.offset, next) << "a gap";
      next += entry.count;
      auto const& there = plan.of(entry.part);
      EXPECT_THAT(there.sends,
                  testing::Contains(PlanEntry{part, entry.count, entry.there, entry.offset}));
      for (u64 i = 0; i < entry.count; ++i) {
        u64& target = after[part].at(here.received[entry.offset + i]);
        EXPECT_EQ(target, BoxCase::nothing) << "received twice, or over an own element";
        target = before[entry.part].at(there.sent[entry.there + i]);
        EXPECT_EQ(target / one.halo.components, here.halo.at(entry.offset + i));
      }
    }
    EXPECT_EQ(next, here.received.count);
    entries += here.receives.size();
  }
  for (u32 part = 0; part < plan.part_count(); ++part) {
    auto const& sends = plan.of(part).sends;
    EXPECT_TRUE(std::ranges::is_sorted(sends, std::less_equal(), &PlanEntry::part));
    entries -= sends.size();
  }
  EXPECT_EQ(entries, 0u) << "as many are sent as received";
  return after;
}

TEST(BoxPlan, fills_each_frame_with_its_cells) {
  std::random_device device;
  for (int round = 0; round < 500 && !testing::Test::HasFailure(); ++round) {
    u64 const seed = device();
    BoxCase const one(seed, 1 + device() % 9);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << one.describe());
    auto const plan = Plan::from_boxes(one.boxes, one.halo);
    auto const memory = played(one, plan);
    Plan::Most most;
    for (u32 part = 0; part < plan.part_count(); ++part) {
      ASSERT_EQ(memory[part], one.expected(part)) << part;
      auto const& here = plan.of(part);
      most.size = std::max(most.size, here.size());
      most.sent = std::max(most.sent, here.sent.count);
      most.received = std::max(most.received, here.received.count);
      most.entries = std::max({most.entries, u64{here.sends.size()}, u64{here.receives.size()}});
      EXPECT_EQ(here.own, one.boxes.box(part).cells() * one.halo.components);
    }
    EXPECT_EQ(plan.most().size, most.size);
    EXPECT_EQ(plan.most().sent, most.sent);
    EXPECT_EQ(plan.most().received, most.received);
    EXPECT_EQ(plan.most().entries, most.entries);
  }
}

TEST(BoxPlan, has_a_place_for_each_cell_of_a_frame) {
  std::random_device device;
  for (int round = 0; round < 60 && !testing::Test::HasFailure(); ++round) {
    u64 const seed = device();
    BoxCase const one(seed, 1 + device() % 9);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << one.describe());
    auto const plan = Plan::from_boxes(one.boxes, one.halo);
    for (u32 part = 0; part < plan.part_count(); ++part) {
      auto const memory = one.expected(part), own = one.expected(part, true);
      for (u64 index = 0; index < one.boxes.grid().cells(); ++index) {
        u64 const value = index * one.halo.components;
        if (std::ranges::find(memory, value) == memory.end()) {
          expect_refused([&] { static_cast<void>(plan.place_of(part, index)); }, {"no place for"});
          continue;
        }
        u64 const place = plan.place_of(part, index);
        ASSERT_EQ(memory.at(place), value);
        Cell const cell = one.boxes.grid().cell_at(index);
        if (one.boxes.box(part).contains(cell)) {
          ASSERT_EQ(own[place], value);
        } else if (one.frame(part).contains(cell) && one.cell_of(part, cell)) {
          ASSERT_EQ(place, one.halo.place_of(one.frame(part), cell)) << "where it is not moved";
        }
      }
    }
  }
}

TEST(BoxPlan, is_the_same_for_a_process_that_makes_its_own_part_alone) {
  for (u64 seed = 1; seed < 100; ++seed) {
    BoxCase const one(seed, static_cast<u32>(1 + seed % 9));
    auto const whole = Plan::from_boxes(one.boxes, one.halo);
    for (u32 part = 0; part < whole.part_count(); ++part) {
      auto const mine = Plan::from_boxes(one.boxes, one.halo, {.first = part, .count = 1});
      ASSERT_EQ(mine.of(part), whole.of(part));
      ASSERT_EQ(mine.fingerprint(), whole.fingerprint());
      ASSERT_EQ(mine.most().sent, whole.most().sent);
      ASSERT_EQ(mine.part_count(), 1u);
    }
  }
}

TEST(BoxPlan, reversed_brings_each_copy_to_its_owner) {
  for (u64 seed = 1; seed < 100; ++seed) {
    BoxCase const one(seed, static_cast<u32>(1 + seed % 9));
    auto const back = Plan::from_boxes(one.boxes, one.halo).reverse();
    std::vector<u64> copies(one.boxes.grid().cells()), come(copies.size());
    for (u32 part = 0; part < back.part_count(); ++part) {
      for (u64 place = 0; place < one.frame(part).cells(); ++place)
        if (auto const cell = one.frame(part).cell_at(place); !one.boxes.box(part).contains(cell))
          if (auto const index = one.cell_of(part, cell)) ++copies[*index];
      auto const own = one.expected(part, true);
      for (u64 i = 0; i < back.of(part).received.count; ++i) {
        u64 const value = own.at(back.of(part).received[i]);
        ASSERT_NE(value, BoxCase::nothing);
        if (value % one.halo.components == 0) ++come[value / one.halo.components];
      }
    }
    ASSERT_EQ(come, copies) << one.describe();
  }
}

TEST(BoxPlan, of_slabs_has_consecutive_pieces) {
  auto const slabs = Boxes::cut({3, 2, 4}, 2);
  auto const plan = Plan::from_boxes(slabs, {.widths = {{0, 0, 1}, {0, 0, 1}}});
  EXPECT_THAT(plan.of(0).sends, ElementsAre(PlanEntry{1, 6, 0, 0}));
  EXPECT_TRUE(plan.of(0).sent.consecutive() && plan.of(0).received.consecutive());
  EXPECT_EQ(plan.of(0).sent.first, 12u);
  EXPECT_EQ(plan.of(0).received.first, 18u);
  EXPECT_EQ(plan.of(1).received.first, 0u);
  EXPECT_EQ(plan.explain(Bytes{8}),
            "boxes of 3 x 2 x 4: 24 elements in 2 parts of 12\n"
            "part 0: 12 own elements, 6 in its halo\n"
            "  to part 1: 6 elements, 48 bytes, within the process\n"
            "  from part 1: 6 elements, 48 bytes, within the process\n"
            "part 1: 12 own elements, 6 in its halo\n"
            "  to part 0: 6 elements, 48 bytes, within the process\n"
            "  from part 0: 6 elements, 48 bytes, within the process\n"
            "in and out: 192 bytes within the process, 0 within the node, 0 by the network\n");
  auto const alone = Plan::from_boxes(slabs, {.widths = Sides::all(1)}, {.first = 1});
  EXPECT_THAT(alone.explain(Bytes{8}),
              testing::HasSubstr("by the network, 96 by other processes, which only"));
}

TEST(BoxPlan, has_a_number_that_depends_on_all_it_is_made_from) {
  auto const boxes = Boxes::cut({8, 8}, 4);
  BoxHalo const usual{.widths = Sides::all(1)};
  std::vector<BoxHalo> all(8, usual);
  all[1].widths.high[1] = 2;
  all[2].corners = true;
  all[3].boundary[0] = Boundary::periodic;
  all[4].boundary[0] = Boundary::reflecting;
  all[5].components = 2;
  all[6].components_apart = true;
  all[7].own = false;
  std::vector<u64> numbers{Plan::from_boxes(Boxes::cut({8, 8}, 2), usual).fingerprint(),
                           Plan::from_boxes(boxes, usual).reverse().fingerprint()};
  for (auto const& halo : all) numbers.push_back(Plan::from_boxes(boxes, halo).fingerprint());
  std::ranges::sort(numbers);
  EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
}

TEST(BoxPlan, refuses_what_does_not_fit) {
  auto const boxes = Boxes::cut({8, 3}, 2);
  BoxHalo halo{.widths = {{0, 4, 0}, {0, 0, 0}}, .boundary = {{{}, Boundary::periodic}}};
  auto const made = [&](PartsHere const& here = {}) { Plan::from_boxes(boxes, halo, here); };
  expect_refused(made, {"make a plan",
                        "a periodic halo of 4 cells was requested in dimension y, "
                        "where the grid has 3",
                        "request at most 3"});
  halo.boundary[1] = Boundary::reflecting;
  expect_refused(made, {"a reflecting halo of 4 cells"});
  halo.boundary[1] = Boundary::none;
  made();  // the rest comes from nowhere
  halo.components = 0;
  expect_refused(made, {"cells of 0 components"});
  halo = {.widths = Sides::all(~0u)};
  expect_refused(made, {"the frame of part 0 is", "2^62 elements are too many", "narrower halos"});
  halo = {.widths = Sides::all(1)};
  expect_refused([&] { made({.first = 1, .count = 2}); },
                 {"parts here are 2 from 1 on, and there are 2"});
  expect_refused([&] { made({.first = 3}); }, {"from 3 on, and there are 2"});
  auto const plan = Plan::from_boxes(boxes, halo);
  expect_refused(
      [&] { static_cast<void>(plan.place_of(0, 7)); },
      {"frame of part 0 has no place for cell (7, 0, 0), which belongs to part 1", "wider halo"});
}

}  // namespace
}  // namespace meshpost
