#include "meshpost/pipeline/group.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"

namespace meshpost::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::shared_ptr<Device>> four() { return open_devices("cpu:4"); }

TEST(DeviceGroup, runs_every_function_of_a_device_on_a_thread_of_its_own) {
  std::array<std::vector<std::thread::id>, 4> threads;
  std::array<std::string, 4> calls;
  {
    DeviceGroup group(
        four(),
        [&](Member const& one) {
          calls[one.index] += 'i', threads[one.index] = {std::this_thread::get_id()};
        },
        [&](Member const& one) {
          calls[one.index] += 'd', threads[one.index].push_back(std::this_thread::get_id());
        });
    EXPECT_EQ(group.size(), 4);
    for (int step = 0; step < 3; ++step)
      group.step_all([&](Member const& one) {
        EXPECT_EQ(one.count, 4);
        EXPECT_EQ(one.device->index(), one.index);
        calls[one.index] += 's', threads[one.index].push_back(std::this_thread::get_id());
      });
    group.finalize();
    group.finalize();
  }
  std::set<std::thread::id> all;
  for (u32 i = 0; i < 4; ++i) {
    EXPECT_EQ(calls[i], "isssd");
    EXPECT_EQ(std::set(threads[i].begin(), threads[i].end()).size(), 1);
    all.insert(threads[i][0]);
  }
  EXPECT_EQ(all.size(), 4);
  EXPECT_FALSE(all.contains(std::this_thread::get_id()));
}

TEST(DeviceGroup, no_step_begins_before_all_are_through_with_the_last) {
  DeviceGroup group(four());
  std::atomic<int> finished{0};
  for (int step = 0; step < 200; ++step)
    group.step_all([&](Member const& one) {
      EXPECT_GE(finished.load(), 4 * step);
      if (one.index == static_cast<u32>(step) % 4) std::this_thread::sleep_for(100us);
      ++finished;
    });
  EXPECT_EQ(finished, 800);
}

TEST(DeviceGroup, a_selective_barrier_waits_for_the_chosen_members_only) {
  DeviceGroup group(four());
  std::atomic<bool> go{false};
  std::array<std::atomic<int>, 4> steps{};
  for (int step = 0; step < 5; ++step)
    group.step_all(
        [&](Member const& one) {
          if (one.index == 3)
            while (!go) std::this_thread::sleep_for(1ms);
          ++steps[one.index];
        },
        {0, 2});
  EXPECT_EQ(steps[0], 5);
  EXPECT_EQ(steps[2], 5);
  EXPECT_EQ(steps[3], 0);  // a wait for it would hang
  go = true;
  group.step_all([](Member const&) {});
  EXPECT_EQ(steps[1], 5);
  EXPECT_EQ(steps[3], 5);
}

TEST(DeviceGroup, an_exception_is_thrown_by_step_all_with_the_devices_name_and_the_others_end) {
  std::atomic<int> deinits{0}, through{0}, late{0};
  DeviceGroup group(four(), {}, [&](Member const&) { ++deinits; });
  auto const error = error_of([&] {
    group.step_all([&](Member const& one) {
      if (one.index == 2) throw std::runtime_error("planted");
      std::this_thread::sleep_for(5ms);
      ++through;
    });
  });
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"cpu:2", "planted"}));
  EXPECT_EQ(through, 3);
  EXPECT_TRUE(says(error_of([&] { group.step_all([&](Member const&) { ++late; }); }),
                   Kind::kernel_failed, {"cpu:2"}));
  group.finalize();
  EXPECT_EQ(late, 0);
  EXPECT_EQ(deinits, 4);
}

TEST(DeviceGroup, an_error_keeps_its_kind_and_one_nobody_waited_for_comes_out_at_the_end) {
  DeviceGroup group(four());
  group.step_all(
      [](Member const& one) {
        if (one.index != 1) return;
        std::this_thread::sleep_for(20ms);
        throw Error(Kind::out_of_memory, "allocate", "planted", "no");
      },
      {0});
  EXPECT_TRUE(
      says(error_of([&] { group.finalize(); }), Kind::out_of_memory, {"cpu:1", "allocate"}));
  group.finalize();
}

TEST(DeviceGroup, one_that_is_destroyed_with_an_error_warns) {
  Listener const listener;
  {
    DeviceGroup group(four(), {}, [](Member const& one) {
      if (one.index == 3) throw std::runtime_error("planted");
    });
  }
  ASSERT_EQ(listener.warnings().size(), 1);
  EXPECT_NE(listener.warnings()[0].find("cpu:3"), std::string::npos);
}

TEST(DeviceGroup, an_init_that_throws_undoes_the_others_and_leaves_no_threads) {
  std::set<u32> undone;
  std::mutex mutex;
  EXPECT_TRUE(says(error_of([&] {
                     DeviceGroup(
                         four(),
                         [](Member const& one) {
                           if (one.index == 1) throw std::runtime_error("planted");
                           std::this_thread::sleep_for(2ms);
                         },
                         [&](Member const& one) {
                           std::scoped_lock const lock(mutex);
                           undone.insert(one.index);
                         });
                   }),
                   Kind::kernel_failed, {"cpu:1", "planted"}));
  EXPECT_EQ(undone, (std::set<u32>{0, 2, 3}));
}

TEST(DeviceGroup, refuses_what_would_hang_or_means_nothing) {
  DeviceGroup group(four());
  group.step_all([&](Member const& one) {
    if (one.index == 0) {
      EXPECT_TRUE(says(error_of([&] { group.step_all([](Member const&) {}); }), Kind::misuse, {}));
      EXPECT_TRUE(says(error_of([&] { group.finalize(); }), Kind::misuse, {}));
    }
  });
  EXPECT_TRUE(says(error_of([&] { group.step_all([](Member const&) {}, {4}); }), Kind::bad_argument,
                   {"member 4 of 4"}));
  group.finalize();
  EXPECT_TRUE(
      says(error_of([&] { group.step_all([](Member const&) {}); }), Kind::misuse, {"ended"}));
  EXPECT_TRUE(says(error_of([] { DeviceGroup({}); }), Kind::bad_argument, {"no devices"}));
  EXPECT_TRUE(says(error_of([] { DeviceGroup({nullptr}); }), Kind::bad_argument, {"null"}));
}

// Each of `groups` takes a step. Its first member waits for all others and then steps the next
// group. \returns the number of refused steps
int step_in_a_circle(std::vector<std::unique_ptr<DeviceGroup>> const& groups) {
  std::atomic<u64> begun{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> callers;
  for (u64 i = 0; i < groups.size(); ++i)
    callers.emplace_back([&, i] {
      groups[i]->step_all([&, i](Member const& one) {
        if (one.index != 0) return;
        ++begun;
        while (begun < groups.size()) std::this_thread::yield();
        try {
          groups[(i + 1) % groups.size()]->step_all([](Member const&) {});
        } catch (Error const& error) {
          EXPECT_TRUE(says(error, Kind::misuse, {"step a device group", "would wait for ever"}));
          ++refused;
        }
      });
    });
  for (auto& caller : callers) caller.join();
  return refused;
}

TEST(DeviceGroup, groups_that_step_each_other_in_a_circle_refuse_the_last_and_go_on) {
  for (u64 const count : {2u, 3u, 5u}) {
    std::vector<std::unique_ptr<DeviceGroup>> groups;
    for (u64 i = 0; i < count; ++i)
      groups.push_back(std::make_unique<DeviceGroup>(open_devices("cpu:2")));
    for (int repeat = 0; repeat < 20; ++repeat) ASSERT_EQ(step_in_a_circle(groups), 1);
  }
}

TEST(DeviceGroup, a_function_may_step_another_group_and_make_one) {
  DeviceGroup outer(four()), other(four());
  std::atomic<int> steps{0};
  outer.step_all([&](Member const& one) {
    EXPECT_TRUE(outer.inside());
    EXPECT_FALSE(other.inside());
    other.step_all([&](Member const&) { ++steps; });
    if (one.index != 0) return;
    DeviceGroup made(open_devices("cpu:1"), [&](Member const&) {
      EXPECT_TRUE(says(error_of([&] { outer.step_all([](Member const&) {}); }), Kind::misuse, {}));
    });
    made.step_all([&](Member const&) { ++steps; });
  });
  EXPECT_EQ(steps, 17);
  EXPECT_FALSE(outer.inside());
}

TEST(DeviceGroup, one_that_its_own_function_destroys_ends_later_with_a_warning) {
  Listener const listener;
  std::atomic<int> ended{0};
  auto group =
      std::make_unique<DeviceGroup>(four(), DeviceGroup::Work{}, [&](Member const&) { ++ended; });
  std::atomic<bool> gone{false};
  group->step_all(
      [&](Member const& one) {
        if (one.index == 0) group.reset();
        gone = gone || one.index == 0;
      },
      {});
  while (!gone || ended < 4) std::this_thread::yield();
  ASSERT_EQ(listener.warnings().size(), 1);
  EXPECT_NE(listener.warnings()[0].find("a function of the group called it"), std::string::npos);
}

}  // namespace
}  // namespace meshpost::test
