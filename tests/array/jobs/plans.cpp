// Plans of jobs: each process builds the plans of its own parts. It also builds those of all parts
// alone, and both must be the same.
#include <meshpost/array/plan.hpp>

#include <random>

#include "array/box_cases.hpp"
#include "array/checked_plan.hpp"
#include "support/forked.hpp"
#include "support/job.hpp"

namespace meshpost {
namespace {

using test::expect_well;
using test::require;
using test::Role;
using testing::HasSubstr;

Role const random_plans("random_plans", [] {
  JobMemory job;
  std::mt19937_64 random(42);  // the same everywhere
  for (int round = 0; round < 20; ++round) {
    std::vector<u32> firsts{0};
    for (u32 process = 0; process < job.processes(); ++process)
      firsts.push_back(firsts.back() + static_cast<u32>(random() % 3));
    if (firsts.back() == 0) continue;
    u32 const parts = firsts.back(), first = firsts[job.process()];
    u64 const size = 1 + random() % 300;
    auto const distribution = round % 2 == 0 ? Distribution::block(size, parts)
                                             : Distribution::cyclic(size, parts, 1 + random() % 5);
    std::vector<std::vector<u64>> needs(parts);
    for (auto& list : needs)
      for (u64 i = random() % 60; i > 0; --i) list.push_back(random() % size);
    auto const whole = Plan::from_indices(distribution, needs);
    std::span const all(needs);
    auto const mine = Plan::from_indices(
        distribution, all.subspan(first, firsts[job.process() + 1] - first), &job);
    require(mine.first_part() == first, "the first part");
    for (u32 part = first; part < firsts[job.process() + 1]; ++part) {
      auto const &one = mine.of(part), &other = whole.of(part);
      require(one.halo == other.halo && one.own == other.own, "the halo");
      require(one.sends == other.sends && one.sent.list == other.sent.list, "what is sent");
      require(one.receives == other.receives, "what is received");
      require(
          mine.most().sent == whole.most().sent && mine.most().received == whole.most().received,
          "the most of any part");
    }
    require(test::wrong_in(distribution, [&](u32 part) { return whole.of(part); }).empty(), "play");
  }
});

Role const random_boxes("random_box_plans", [] {
  JobMemory job;
  for (u64 seed = 1; seed <= 20; ++seed) {
    u32 const before = static_cast<u32>(seed % 3), all = before + 1 + static_cast<u32>(seed % 2);
    test::BoxCase const one(seed, all);
    u32 const here = job.process() == 0 ? before : job.process() == 1 ? all - before : 0;
    auto const whole = Plan::from_boxes(one.boxes, one.halo);
    auto const mine = Plan::from_boxes(one.boxes, one.halo, {.count = here, .job = &job});
    require(mine.part_count() == here, "the number of parts");
    require(here == 0 || mine.first_part() == job.process() * before, "the first part");
    for (u32 part = mine.first_part(); part < mine.first_part() + here; ++part)
      require(mine.of(part) == whole.of(part), one.describe());
    require(mine.fingerprint() == whole.fingerprint(), "the number");
  }
});

Role const bad_boxes("refused_box_plans", [] {
  JobMemory job;
  bool const first = job.process() == 0;
  auto const boxes = Boxes::cut({8, 8}, 2);
  auto const plan = [&](u32 width, PartsHere here) {
    here.job = &job;
    return Plan::from_boxes(
        boxes, {.widths = Sides::all(width), .boundary = {Boundary::none, Boundary::periodic}},
        here);
  };
  auto const refuse = [&](u32 width, PartsHere const& here) {
    test::print_error([&] { plan(width, here); });
  };
  refuse(first ? 9 : 8, {.count = 1});  // bad in one process alone
  refuse(first ? 1 : 2, {.count = 1});
  test::print_error([&] {
    Plan::from_boxes(boxes, {.widths = Sides::all(1), .own = first}, {.count = 1, .job = &job});
  });
  refuse(1, {.count = 2});
  refuse(1, first ? PartsHere{.count = 1} : PartsHere{});
  refuse(1, {.first = 0, .count = 1});
  test::say(plan(1, {.first = job.process(), .count = 1}).explain(Bytes{8}));
});

// Two parts need each other's first element.
Plan two(JobMemory& job, Distribution const& distribution) {
  std::vector<std::vector<u64>> const needs = {{job.process() == 0 ? 5u : 0u}};
  return Plan::from_indices(distribution, needs, &job);
}

Role const explained("explained_plan", [] {
  JobMemory job;
  test::say(two(job, Distribution::block(10, 2)).explain(Bytes{8}));
});

Role const refused("refused_plans", [] {
  JobMemory job;
  bool const first = job.process() == 0;
  test::print_error([&] {  // in one process alone
    std::vector<std::vector<u64>> const needs = {{first ? 10u : 0u}};
    Plan::from_indices(Distribution::block(10, 2), needs, &job);
  });
  test::print_error([&] { two(job, Distribution::block(10, first ? 2 : 3)); });
  test::print_error([&] { two(job, Distribution::block(10, 3)); });
  test::print_error([&] {  // the same words, and other places
    double const uneven[] = {2, 8}, other[] = {8, 2};
    two(job, Distribution::block(10, std::span<double const>(first ? uneven : other)));
  });
  two(job, Distribution::block(10, 2));  // goes on
  test::say("went on");
});

Role const forked("plan_in_a_child", [] {
  JobMemory job;
  job.meet("before the fork");
  pid_t const child = fork();
  if (child == 0) {
    test::print_error([&] { two(job, Distribution::block(10, 2)); });
    test::return_from_main();
    return;
  }
  test::require(test::status_of(child) == 0, "the child ended well");
  two(job, Distribution::block(10, 2));
});

Role const killed("plan_of_a_killed_process", [] {
  JobMemory job;
  if (job.process() == 1) raise(SIGKILL);
  two(job, Distribution::block(10, 2));
});

TEST(JobPlans, are_those_of_one_process_with_all_parts) {
  for (u32 const processes : {1, 2, 4}) {
    SCOPED_TRACE(processes);
    test::Job job("random_plans", processes);
    expect_well(job.wait());
  }
}

TEST(JobPlans, from_boxes_are_those_of_one_process_with_all_parts) {
  test::Job job("random_box_plans", 2);
  expect_well(job.wait());
}

TEST(JobPlans, from_boxes_that_differ_are_refused_in_all) {
  test::Job job("refused_box_plans", 2);
  auto const& all = job.wait();
  expect_well(all);
  for (auto const& one : all) {
    EXPECT_THAT(one.out, HasSubstr("a periodic halo of 9 cells was requested in dimension y"));
    EXPECT_THAT(one.out, HasSubstr("has other boxes or another halo (8 x 8 x 1 cells in 2 boxes"));
    EXPECT_THAT(one.out, HasSubstr("cells without those of the box itself, boundary"));
    EXPECT_THAT(one.out, HasSubstr("frames of 4 parts were given (process 0: 2, process 1: 2)"));
    EXPECT_THAT(one.out, HasSubstr("PartsHere::count is missing"));
    EXPECT_THAT(one.out, HasSubstr("PartsHere::first is 0, and by the counts of the processes "
                                   "before it is 1"));
    EXPECT_THAT(one.out, HasSubstr("within the node, process "));
  }
}

TEST(JobPlans, say_what_stays_on_the_node) {
  test::Job job("explained_plan", 2);
  auto const& all = job.wait();
  expect_well(all);
  EXPECT_THAT(all[0].out,
              HasSubstr("to part 1: 1 elements, 8 bytes, within the node, process 1\n"));
  EXPECT_THAT(all[1].out, HasSubstr("16 within the node, 0 by the network"));
}

TEST(JobPlans, that_fail_in_one_process_fail_in_all) {
  test::Job job("refused_plans", 2);
  auto const& all = job.wait();
  expect_well(all);
  for (auto const& one : all) {
    EXPECT_THAT(one.out, HasSubstr("part 0 needs element 10, and the array has 10"));
    EXPECT_THAT(one.out, HasSubstr("another distribution"));
    EXPECT_THAT(one.out, HasSubstr("needs of 2 parts were given (process 0: 1, process 1: 1), and "
                                   "the array has 3"));
    EXPECT_THAT(one.out, HasSubstr("World::device_count() parts"));
    EXPECT_THAT(one.out,
                HasSubstr("another distribution (block: 10 elements in 2 parts of 2 to 8)"));
    EXPECT_THAT(one.out, HasSubstr("went on"));
  }
}

TEST(JobPlans, are_not_for_a_child_that_was_forked) {
  test::Job job("plan_in_a_child", 2);
  auto const& all = job.wait();
  expect_well(all);
  for (auto const& one : all) EXPECT_THAT(one.out, HasSubstr("error: make a plan"));
}

TEST(JobPlans, end_with_an_error_if_a_process_is_lost) {
  test::Job job("plan_of_a_killed_process", 3);
  auto const& all = job.wait();
  EXPECT_TRUE(all[1].killed());
  EXPECT_THAT(all[0].out, HasSubstr("uncaught: "));
  EXPECT_THAT(all[0].out, HasSubstr("[peer lost]"));
}

}  // namespace
}  // namespace meshpost
