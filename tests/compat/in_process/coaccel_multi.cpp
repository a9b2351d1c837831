// Threads of COACCEL's multi: their steps, their end, and calls that they may not make.
#include <array>
#include <atomic>
#include <string>

#include "compat/in_process/coaccel.hpp"
#include "support/sink.hpp"

namespace meshpost::test {
namespace {

struct Calls {
  std::atomic<int> init{0}, step{0}, deinit{0}, fail_at{-1};
  std::array<std::atomic<int>, 8> threads{};
};
int count_init(coaccel_device_group, coaccel_device, int, int, void* data) {
  return ++static_cast<Calls*>(data)->init, 0;
}
int count_deinit(coaccel_device_group, coaccel_device, int, int, void* data) {
  return ++static_cast<Calls*>(data)->deinit, 0;
}
int count_step(coaccel_device_group, coaccel_device, int iddevice, int ithread, void* data) {
  auto& calls = *static_cast<Calls*>(data);
  EXPECT_EQ(iddevice, ithread % 2);
  ++calls.step, ++calls.threads[static_cast<u64>(ithread)];
  return calls.fail_at == ithread ? 42 : 0;
}

TEST_F(Coaccel, multi_steps_all_threads_and_reports_one_that_fails) {
  coaccel_device const devices[] = {host, device};
  auto const group = coaccel_group_init(2, devices, -1);
  for (int threads : {0, 5}) {
    int const all = threads == 0 ? 2 : threads;
    Calls calls;
    auto const multi = coaccel_multi_init(group, threads, count_init, count_deinit, &calls);
    ASSERT_NE(multi, nullptr);
    for (int i = 0; i < 10; ++i) coaccel_multi_step_all(multi, count_step, &calls);
    EXPECT_EQ(calls.init, all);
    EXPECT_EQ(calls.step, 10 * all);
    for (int t = 0; t < all; ++t) EXPECT_EQ(calls.threads[static_cast<u64>(t)], 10);
    Listener const listener;
    calls.fail_at = 1;
    coaccel_multi_step_all(multi, count_step, &calls);
    expect_error("returned 42");
    EXPECT_EQ(listener.warnings().size(), 1);
    Calls others;
    coaccel_multi_finalize(multi, &others);
    EXPECT_EQ(others.deinit, all);
    EXPECT_EQ(calls.deinit, 0);
  }
  EXPECT_EQ(coaccel_multi_init(group, -1, nullptr, nullptr, nullptr), nullptr);
  expect_error("-1 threads");
  coaccel_group_done(group);
  EXPECT_EQ(coaccel_group_init(2, devices, 2), nullptr);
  expect_error("device 2 of 2");
}

struct Steps {
  coaccel_multi mine = nullptr, other = nullptr;
  std::atomic<int> refused{0}, deinit{0}, steps{0};
};
int finalize_inside(coaccel_device_group, coaccel_device, int, int, void* data) {
  auto& steps = *static_cast<Steps*>(data);
  coaccel_multi_finalize(steps.mine, data);
  char const* const text = coaccel_last_error();
  if (text && std::string(text).find("a function of the group called it") != std::string::npos)
    ++steps.refused;
  return 0;
}
int count_end(coaccel_device_group, coaccel_device, int, int, void* data) {
  return ++static_cast<Steps*>(data)->deinit, 0;
}

TEST_F(Coaccel, multi_that_is_finalized_inside_a_step_goes_on) {
  coaccel_device const devices[] = {host, device};
  auto const group = coaccel_group_init(2, devices, -1);
  Steps steps;
  steps.mine = coaccel_multi_init(group, 0, nullptr, count_end, nullptr);
  Listener const listener;
  for (int i = 0; i < 2; ++i) coaccel_multi_step_all(steps.mine, finalize_inside, &steps);
  EXPECT_EQ(steps.refused, 4);
  EXPECT_EQ(steps.deinit, 0);
  coaccel_multi_finalize(steps.mine, &steps);
  EXPECT_EQ(steps.deinit, 2);
  EXPECT_EQ(listener.warnings().size(), 4);
  coaccel_group_done(group);
}

int step_back(coaccel_device_group, coaccel_device, int, int, void* data) {
  auto& steps = *static_cast<Steps*>(data);
  coaccel_multi_step_all(steps.mine, count_end, data);  // of which a thread waits for this function
  coaccel_multi_finalize(steps.mine, data);
  if (coaccel_last_error()) ++steps.refused;
  return 0;
}
int step_other(coaccel_device_group, coaccel_device, int, int ithread, void* data) {
  auto& steps = *static_cast<Steps*>(data);
  if (ithread == 0) coaccel_multi_step_all(steps.other, step_back, data);
  ++steps.steps;
  return 0;
}

TEST_F(Coaccel, multis_that_step_each_other_get_an_error_and_go_on) {
  coaccel_device const devices[] = {host, device};
  auto const group = coaccel_group_init(2, devices, -1);
  Steps steps;
  steps.mine = coaccel_multi_init(group, 0, nullptr, nullptr, nullptr);
  steps.other = coaccel_multi_init(group, 0, nullptr, nullptr, nullptr);
  Listener const listener;
  coaccel_multi_step_all(steps.mine, step_other, &steps);
  EXPECT_EQ(coaccel_last_error(), nullptr);
  EXPECT_EQ(steps.refused, 2);
  EXPECT_EQ(steps.steps, 2);
  EXPECT_EQ(steps.deinit, 0);
  for (auto const& text : listener.warnings())  // two calls may run at once: one detects the other
    EXPECT_TRUE(text.find("both would wait for ever") != std::string::npos ||
                text.find("another call is ending these threads") != std::string::npos)
        << text;
  EXPECT_EQ(listener.warnings().size(), 4);
  for (auto const multi : {steps.mine, steps.other}) {
    coaccel_multi_step_all(multi, count_end, &steps);
    coaccel_multi_finalize(multi, nullptr);
  }
  EXPECT_EQ(steps.deinit, 4);
  coaccel_group_done(group);
}

int finalize_mine(coaccel_device_group, coaccel_device, int, int, void* data) {
  auto& steps = *static_cast<Steps*>(data);
  coaccel_multi_finalize(steps.mine, data);
  if (coaccel_last_error()) ++steps.refused;
  return 0;
}
int finalize_again(coaccel_device_group group, coaccel_device device, int iddevice, int ithread,
                   void* data) {
  auto& steps = *static_cast<Steps*>(data);
  finalize_mine(group, device, iddevice, ithread, data);
  if (ithread == 0) coaccel_multi_step_all(steps.other, finalize_mine, data);
  ++steps.deinit;
  return 0;
}

TEST_F(Coaccel, multi_that_its_own_end_finalizes_again_ends_once) {
  coaccel_device const devices[] = {host, device};
  auto const group = coaccel_group_init(2, devices, -1);
  Steps steps;
  steps.mine = coaccel_multi_init(group, 0, nullptr, finalize_again, nullptr);
  steps.other = coaccel_multi_init(group, 0, nullptr, nullptr, nullptr);
  Listener const listener;
  coaccel_multi_finalize(steps.mine, &steps);
  EXPECT_EQ(steps.deinit, 2);
  EXPECT_EQ(steps.refused, 4);
  EXPECT_EQ(listener.warnings().size(), 4);
  coaccel_multi_finalize(steps.other, nullptr);
  coaccel_group_done(group);
}

}  // namespace
}  // namespace meshpost::test
