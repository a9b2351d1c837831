// Plans of one process: what they say is played, element by element.
#include <meshpost/array/plan.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "array/checked_plan.hpp"
#include "array/refused.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

using test::expect_refused;
using testing::ElementsAre;

TEST(Plan, gives_each_part_what_it_needs) {
  std::mt19937_64 random{std::random_device{}()};
  for (int round = 0; round < 200; ++round) {
    auto const parts = static_cast<u32>(1 + random() % 6);
    u64 const size = 1 + random() % 200;
    std::vector<u32> owners(size);
    for (auto& owner : owners) owner = static_cast<u32>(random() % parts);
    Distribution const distributions[] = {Distribution::block(size, parts),
                                          Distribution::cyclic(size, parts, 3),
                                          Distribution::general(owners, parts)};
    auto const& distribution = distributions[random() % 3];
    std::vector<std::vector<u64>> needs(parts);
    for (auto& list : needs)
      for (u64 i = random() % 100; i > 0; --i) list.push_back(random() % size);
    auto const plan = Plan::from_indices(distribution, needs);
    ASSERT_EQ(test::wrong_in(distribution, [&](u32 part) { return plan.of(part); }), "");
    for (u32 part = 0; part < parts; ++part) {
      u64 of_others = 0;
      std::ranges::sort(needs[part]);
      needs[part].erase(std::unique(needs[part].begin(), needs[part].end()), needs[part].end());
      for (u64 const index : needs[part]) {
        bool const own = distribution.owner_of(index) == part;
        of_others += !own;
        u64 const place = plan.place_of(part, index);
        ASSERT_EQ(own ? distribution.index_of(part, place)
                      : plan.of(part).halo.at(place - plan.of(part).own),
                  index);
      }
      ASSERT_EQ(plan.of(part).halo.size(), of_others) << "nothing that nobody needs";
    }
  }
}

TEST(Plan, of_a_matrix_gives_each_part_the_columns_of_its_rows) {
  // A periodic line of 10 in two parts: each row has its two neighbours.
  auto const line = Distribution::block(10, 2);
  std::vector<u64> offsets[2], columns[2];
  for (u64 row = 0; row < 10; ++row) {
    u32 const part = line.owner_of(row);
    offsets[part].push_back(columns[part].size());
    for (u64 const column : {(row + 9) % 10, row, (row + 1) % 10}) columns[part].push_back(column);
  }
  for (u32 part = 0; part < 2; ++part) offsets[part].push_back(columns[part].size());
  Plan::Pattern const patterns[] = {{offsets[0], columns[0]}, {offsets[1], columns[1]}};
  auto const plan = Plan::from_pattern(line, patterns);
  EXPECT_THAT(plan.of(0).halo, ElementsAre(5, 9));
  EXPECT_THAT(plan.of(1).halo, ElementsAre(0, 4));
  EXPECT_THAT(plan.of(0).sends, ElementsAre(PlanEntry{1, 2, 0, 0}));
  EXPECT_THAT(plan.of(0).sent.list, ElementsAre(0, 4));
  EXPECT_EQ(plan.place_of(1, 4), 6u);
  EXPECT_EQ(plan.explain(Bytes{8}),
            "block: 10 elements in 2 parts of 5\n"
            "part 0: 5 own elements, 2 in its halo\n"
            "  to part 1: 2 elements, 16 bytes, within the process\n"
            "  from part 1: 2 elements, 16 bytes, within the process\n"
            "part 1: 5 own elements, 2 in its halo\n"
            "  to part 0: 2 elements, 16 bytes, within the process\n"
            "  from part 0: 2 elements, 16 bytes, within the process\n"
            "in and out: 64 bytes within the process, 0 within the node, 0 by the network\n");
}

TEST(Plan, reversed_sends_from_halos_to_their_owners) {
  auto const distribution = Distribution::cyclic(12, 3);
  std::vector<std::vector<u64>> const needs = {{1, 2}, {0, 3}, {}};
  auto const plan = Plan::from_indices(distribution, needs);
  auto const back = plan.reverse();
  for (u32 part = 0; part < 3; ++part) {
    EXPECT_EQ(back.of(part).sends, plan.of(part).receives);
    EXPECT_EQ(back.of(part).receives, plan.of(part).sends);
    EXPECT_EQ(back.of(part).sent.first, plan.of(part).own);
    EXPECT_EQ(back.of(part).received.list, plan.of(part).sent.list);
  }
  EXPECT_EQ(test::wrong_in(distribution, [&](u32 part) { return back.reverse().of(part); }), "");
}

TEST(Plan, knows_the_most_of_any_part_and_has_a_number) {
  auto const distribution = Distribution::block(9, 3);
  std::vector<std::vector<u64>> const needs = {{8, 7, 3}, {}, {0, 1}},
                                      other = {{8, 7, 4}, {}, {0, 1}};
  auto const plan = Plan::from_indices(distribution, needs);
  EXPECT_EQ(plan.most().size, 6u);
  EXPECT_EQ(plan.most().sent, 2u);
  EXPECT_EQ(plan.most().received, 3u);
  EXPECT_EQ(plan.most().entries, 2u);
  EXPECT_EQ(plan.reverse().most().sent, 3u);
  EXPECT_EQ(plan.fingerprint(), Plan::from_indices(distribution, needs).fingerprint());
  EXPECT_NE(plan.fingerprint(), Plan::from_indices(distribution, other).fingerprint());
  EXPECT_NE(plan.fingerprint(), plan.reverse().fingerprint());
}

TEST(Plan, needs_nothing_where_parts_need_nothing) {
  std::vector<std::vector<u64>> const nothing(3), none;
  auto const plan = Plan::from_indices(Distribution::block(2, 3), nothing);
  EXPECT_TRUE(plan.of(2).sends.empty());
  EXPECT_EQ(plan.of(2).size(), 0u);
  EXPECT_EQ(plan.part_count(), 3u);
}

TEST(Plan, refuses_what_does_not_fit) {
  auto const distribution = Distribution::block(10, 2);
  std::vector<std::vector<u64>> const outside = {{}, {3, 10}}, one(1), three(3);
  expect_refused([&] { Plan::from_indices(distribution, outside); },
                 {"make a plan", "part 1 needs element 10, and the array has 10"});
  expect_refused([&] { Plan::from_indices(distribution, one); },
                 {"needs of 1 part were given, and the array has 2"});
  expect_refused([&] { Plan::from_indices(distribution, three); }, {"needs of 3 parts"});
  u64 const columns[] = {0, 5, 11}, falling[] = {0, 2, 1}, beyond[] = {0, 4}, all[] = {0, 3};
  auto const pattern = [&](std::span<u64 const> offsets) {
    return std::vector<Plan::Pattern>{{offsets, columns}, {}};
  };
  expect_refused([&] { Plan::from_pattern(distribution, pattern(falling)); },
                 {"row 1 of part 0 has the columns from 2 to 1 of 3"});
  expect_refused([&] { Plan::from_pattern(distribution, pattern(beyond)); },
                 {"row 0 of part 0 has the columns from 0 to 4 of 3"});
  expect_refused([&] { Plan::from_pattern(distribution, pattern(all)); }, {"element 11"});
  std::vector<std::vector<u64>> const needs = {{7}, {}};
  auto const plan = Plan::from_indices(distribution, needs);
  expect_refused([&] { static_cast<void>(plan.of(2)); }, {"part 2 is not of this process"});
  expect_refused([&] { static_cast<void>(plan.place_of(0, 8)); },
                 {"part 0 has no place for element 8, which belongs to part 1"});
  expect_refused([&] { static_cast<void>(plan.place_of(0, 99)); }, {"no element 99"});
}

}  // namespace
}  // namespace meshpost
