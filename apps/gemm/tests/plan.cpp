#include "plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "meshpost/base/error.hpp"

namespace meshpost::gemm {
namespace {

// Carries out one device's part in one possible order of events, with buffers that remember their
// content. Fetches of A, fetches of B and products each proceed in order, at any speed. Their begin
// and end are separate events.
class Simulation {
 public:
  Simulation(Plan const& plan, u32 device, std::mt19937_64& generator)
      : plan_(plan), device_(device), own_(plan.devices[device]), generator_(generator) {}

  // The first error; empty: none.
  std::string run() {
    while (problem_.empty() && (steps_.ended < own_.steps.size() || a_.ended < own_.a.size() ||
                                b_.ended < own_.b.size())) {
      std::vector<void (Simulation::*)()> can;
      if (a_.begun > a_.ended) can.push_back(&Simulation::end_a);
      else if (may_begin(own_.a, a_)) can.push_back(&Simulation::begin_a);
      if (b_.begun > b_.ended) can.push_back(&Simulation::end_b);
      else if (may_begin(own_.b, b_)) can.push_back(&Simulation::begin_b);
      if (steps_.begun > steps_.ended) can.push_back(&Simulation::end_step);
      else if (step_may_begin()) can.push_back(&Simulation::begin_step);
      if (can.empty()) return "nothing can go on";
      (this->*can[generator_() % can.size()])();
    }
    return problem_;
  }

 private:
  struct FetchQueue {
    u64 begun = 0, ended = 0;
    std::map<u32, Range> slots;  // whole panels only, none that is being written
    std::map<u32, u32> owners;
  };

  bool may_begin(std::vector<Fetch> const& fetches, FetchQueue const& queue) const {
    return queue.begun < fetches.size() && fetches[queue.begun].after <= steps_.ended;
  }
  bool step_may_begin() const {
    if (steps_.begun == own_.steps.size()) return false;
    auto const& step = own_.steps[steps_.begun];
    return static_cast<i64>(a_.ended) > step.a && static_cast<i64>(b_.ended) > step.b;
  }
  void begin(std::vector<Fetch> const& fetches, FetchQueue& queue) {
    auto const& fetch = fetches[queue.begun++];
    if (fetch.slot >= plan_.options.slots) problem_ = "no such slot";
    queue.slots.erase(fetch.slot);
  }
  void end(std::vector<Fetch> const& fetches, FetchQueue& queue) {
    auto const& fetch = fetches[queue.ended++];
    queue.slots[fetch.slot] = fetch.k;
    queue.owners[fetch.slot] = fetch.owner;
  }
  void begin_a() { begin(own_.a, a_); }
  void end_a() { end(own_.a, a_); }
  void begin_b() { begin(own_.b, b_); }
  void end_b() { end(own_.b, b_); }
  void begin_step() {
    ++steps_.begun;
    look();
  }
  void end_step() {
    look();  // nothing may have changed while it ran
    ++steps_.ended;
  }

  // Checks that the operands of the running step have arrived and are the right ones.
  void look() {
    auto const& [problem, options, devices] = plan_;
    auto const& step = own_.steps[steps_.begun - 1];
    u32 const row = device_ / problem.grid.columns, column = device_ % problem.grid.columns;
    auto const owner = [&](i32 position, std::vector<Fetch> const& fetches,
                           FetchQueue const& queue) {
      if (position == Step::in_place) return device_;
      u32 const slot = fetches.at(position).slot;
      auto const held = queue.slots.find(slot);
      if (held == queue.slots.end() || held->second != step.k)
        problem_ = "a buffer holds something else";
      return held == queue.slots.end() ? device_ : queue.owners.at(slot);
    };
    auto const inside = [&](Range const& whole) {
      if (step.k.first < whole.first || step.k.end() > whole.end()) problem_ = "not the owner's";
    };
    u32 const a = owner(step.a, own_.a, a_), b = owner(step.b, own_.b, b_);
    if (a / problem.grid.columns != row) problem_ = "A of another row";
    if (b % problem.grid.columns != column) problem_ = "B of another column";
    inside(part(problem.k, problem.grid.columns, a % problem.grid.columns));
    inside(part(problem.k, problem.grid.rows, b / problem.grid.columns));
  }

  Plan const& plan_;
  u32 device_;
  DevicePlan const& own_;
  std::mt19937_64& generator_;
  FetchQueue a_, b_, steps_;
  std::string problem_;
};

void check(Plan const& plan, std::mt19937_64& generator) {
  for (u32 d = 0; d < plan.devices.size(); ++d) {
    auto const& own = plan.devices[d];
    std::vector<int> times(plan.problem.k);
    for (auto const& step : own.steps)
      for (u64 k = step.k.first; k < step.k.end(); ++k) ++times.at(k);
    ASSERT_EQ(times, std::vector<int>(plan.problem.k, 1)) << "every product once";
    for (auto const* list : {&own.a, &own.b})
      for (auto const& fetch : *list) {
        EXPECT_NE(fetch.owner, d);
        EXPECT_LE(fetch.k.count, plan.options.panel);
        EXPECT_GT(fetch.k.count, 0u);
      }
    for (int order = 0; order < 5; ++order)
      ASSERT_EQ(Simulation(plan, d, generator).run(), "") << "device " << d;
  }
}

TEST(GemmPlan, is_right_in_every_order_of_events_for_any_grid_and_size) {
  auto const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 generator(seed);
  auto const up_to = [&](u32 most) { return static_cast<u32>(generator() % most) + 1; };
  for (int round = 0; round < 300; ++round) {
    Problem problem{0, 0, 0, {up_to(5), up_to(5)}};
    u32 const least = std::max(problem.grid.rows, problem.grid.columns);
    problem.m = least + generator() % 50;
    problem.n = least + generator() % 50;
    problem.k = least + generator() % 200;
    PlanOptions options{up_to(40), up_to(4), static_cast<Order>(generator() % 3),
                        generator() % 2 == 0};
    if (generator() % 2 == 0) {
      options.distances.assign(problem.grid.devices(), {});
      for (auto& row : options.distances)
        for (u32 d = 0; d < problem.grid.devices(); ++d) row.push_back(up_to(3));
    }
    check(make_plan(problem, options), generator);
    if (HasFatalFailure()) return;
  }
}

TEST(GemmPlan, the_simulation_finds_a_buffer_that_is_overwritten) {
  std::mt19937_64 generator(1);
  auto plan = make_plan({64, 64, 64, {2, 1}}, {4, 2});
  for (auto& fetch : plan.devices[0].b) fetch.after = 0;
  bool found = false;
  for (int order = 0; order < 50; ++order)
    found = found || !Simulation(plan, 0, generator).run().empty();
  EXPECT_TRUE(found);
}

TEST(GemmPlan, one_device_multiplies_everything_at_once) {
  auto const plan = make_plan({7, 8, 9, {1, 1}}, {});
  ASSERT_EQ(plan.devices[0].steps.size(), 1u);
  EXPECT_EQ(plan.devices[0].steps[0].k, (Range{0, 9}));
  EXPECT_EQ(exchanged(plan), 0u);
}

TEST(GemmPlan, two_devices_begin_with_their_own_parts_and_exchange_half_of_b) {
  auto const plan = make_plan({100, 100, 100, {2, 1}}, {1000, 2});
  for (u32 d = 0; d < 2; ++d) {
    auto const& own = plan.devices[d];
    ASSERT_EQ(own.steps.size(), 2u);
    EXPECT_EQ(own.steps[0].b, Step::in_place);
    EXPECT_EQ(own.steps[0].k, (Range{50 * d, 50}));
    EXPECT_TRUE(own.a.empty());
    ASSERT_EQ(own.b.size(), 1u);
    EXPECT_EQ(own.b[0].owner, 1 - d);
  }
  EXPECT_EQ(exchanged(plan), u64{2 * 50 * 100});
}

TEST(GemmPlan, four_devices_take_parts_over_fast_links_before_those_over_slow_ones) {
  PlanOptions options{1000, 2};
  Plan plan;
  auto const first_owners = [&](u32 d) {  // of A and B in the order of steps
    std::vector<std::pair<u32, u32>> owners;
    for (auto const& step : plan.devices[d].steps) {
      auto const& [a, b, steps] = plan.devices[d];
      std::pair<u32, u32> const now{step.a < 0 ? d : a[step.a].owner,
                                    step.b < 0 ? d : b[step.b].owner};
      if (owners.empty() || owners.back() != now) owners.push_back(now);
    }
    return owners;
  };
  using Owners = std::vector<std::pair<u32, u32>>;
  auto const near = [&](auto const& pairs) {
    options.distances.assign(4, std::vector<u32>(4, 2));
    for (auto const& [one, other] : pairs)
      options.distances[one][other] = options.distances[other][one] = 1;
    plan = make_plan({100, 100, 100, {2, 2}}, options);
  };
  near(std::vector{std::pair{0, 1}, std::pair{2, 3}});   // buses of the thesis
  EXPECT_EQ(first_owners(0), (Owners{{0, 0}, {1, 2}}));  // c0 = a0 b0 + a1 b2
  EXPECT_EQ(first_owners(1), (Owners{{0, 1}, {1, 3}}));  // c1 = a0 b1 + a1 b3
  EXPECT_EQ(first_owners(2), (Owners{{3, 2}, {2, 0}}));  // c2 = a3 b2 + a2 b0
  EXPECT_EQ(first_owners(3), (Owners{{3, 3}, {2, 1}}));  // c3 = a3 b3 + a2 b1
  auto const by_links = plan.devices;
  options.order = Order::numbers;
  EXPECT_EQ(make_plan(plan.problem, options).devices, by_links);

  options.order = Order::links;
  near(std::vector{std::pair{0, 2}, std::pair{1, 3}});  // other buses
  EXPECT_EQ(first_owners(0), (Owners{{0, 0}, {1, 2}}));
  EXPECT_EQ(first_owners(1), (Owners{{1, 3}, {0, 1}}));
  EXPECT_EQ(first_owners(2), (Owners{{2, 0}, {3, 2}}));
  EXPECT_NE(plan.devices, by_links);
}

TEST(GemmPlan, fetches_what_the_formula_says) {
  Problem const problem{31, 47, 53, {2, 3}};
  auto const plan = make_plan(problem, {7, 2});
  u64 sum = 0;
  for (u32 d = 0; d < 6; ++d) sum += fetched_by_formula(problem, d);
  EXPECT_EQ(exchanged(plan), sum);
  EXPECT_EQ(fetched_by_formula({100, 100, 100, {2, 2}}, 3), u64{2 * 50 * 50});
  EXPECT_EQ(fetched_by_formula({100, 100, 100, {1, 1}}, 0), 0u);
}

TEST(GemmPlan, who_has_nothing_to_begin_with_fetches_a_small_panel_first) {
  auto const plan = make_plan({4096, 4096, 4096, {2, 2}}, {1024, 2});
  EXPECT_EQ(plan.devices[1].b[0].k.count, 128u);
  EXPECT_EQ(plan.devices[1].b[1].k.count, 256u);
  EXPECT_EQ(plan.devices[0].a[0].k.count, 1024u);
}

TEST(GemmPlan, parts_cover_and_differ_by_one_at_most) {
  for (u64 const count : {u64{1}, u64{7}, u64{12}, u64{100}})
    for (u32 parts = 1; parts <= 7; ++parts) {
      u64 next = 0;
      for (u32 i = 0; i < parts; ++i) {
        auto const range = part(count, parts, i);
        EXPECT_EQ(range.first, next);
        EXPECT_LE(range.count - count / parts, 1u);
        next = range.end();
      }
      EXPECT_EQ(next, count);
    }
}

TEST(GemmPlan, grids_are_read_and_chosen) {
  EXPECT_EQ(parse_grid("2x3"), (Grid{2, 3}));
  for (auto const* wrong : {"", "2", "2x", "0x2", "2x3x4", "-1x2", "axb"})
    EXPECT_THROW(parse_grid(wrong), Error) << wrong;
  EXPECT_EQ(default_grid(1), (Grid{1, 1}));
  EXPECT_EQ(default_grid(2), (Grid{2, 1}));
  EXPECT_EQ(default_grid(4), (Grid{2, 2}));
  EXPECT_EQ(default_grid(6), (Grid{3, 2}));
  EXPECT_EQ(default_grid(7), (Grid{7, 1}));
  EXPECT_EQ(default_grid(8), (Grid{4, 2}));
}

TEST(GemmPlan, refuses_what_can_not_be_spread) {
  EXPECT_THROW(make_plan({2, 8, 8, {3, 1}}, {}), Error);
  EXPECT_THROW(make_plan({8, 8, 0, {1, 1}}, {}), Error);
  EXPECT_THROW(make_plan({8, 8, 8, {2, 1}}, {0, 2}), Error);
  EXPECT_THROW(make_plan({8, 8, 8, {2, 1}}, {4, 0}), Error);
  EXPECT_THROW(make_plan({8, 8, 8, {2, 1}}, {4, 2, Order::links, true, {{0, 1}}}), Error);
}

}  // namespace
}  // namespace meshpost::gemm
