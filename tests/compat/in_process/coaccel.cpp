#include "meshpost/compat/coaccel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost::test {
namespace {

std::string name_of_device(int i) { return on_gpus() ? "cuda:0" : "cpu:" + std::to_string(i); }

struct Coaccel : testing::Test {
  coaccel_device host = coaccel_device_open("pageable"), pinned = coaccel_device_open("pinned"),
                 device = coaccel_device_open(name_of_device(1).c_str());
  void SetUp() override { ASSERT_TRUE(host && pinned && device) << coaccel_last_error(); }
  void TearDown() override {
    EXPECT_STREQ(coaccel_last_error(), nullptr);
    for (auto const one : {host, pinned, device}) coaccel_device_close(one);
  }
};

void expect_error(std::string const& piece) {
  char const* const text = coaccel_last_error();
  ASSERT_NE(text, nullptr) << "no error that says " << piece;
  EXPECT_NE(std::string(text).find(piece), std::string::npos) << text;
}

TEST_F(Coaccel, memcpy_moves_lists_there_and_back) {
  std::mt19937_64 random(std::random_device{}());
  std::vector<unsigned char> from(3000), to(3000, 0xee);
  for (auto& byte : from) byte = static_cast<unsigned char>(random());
  auto* const there = static_cast<unsigned char*>(coaccel_device_malloc(device, 3000));
  ASSERT_NE(there, nullptr);
  coaccel_address dst[] = {there + 1000, there, there + 2500};
  coaccel_address src[] = {from.data(), from.data() + 1000, from.data() + 2000};
  size_t size[] = {1000, 1000, 0};
  coaccel_memcpy_finish(device, coaccel_memcpy_start(device, 3, dst, src, size, 0));
  coaccel_address home[] = {to.data()};
  coaccel_address away[] = {there};
  size_t all[] = {2000};
  coaccel_memcpy_finish(device, coaccel_memcpy_start(device, 1, home, away, all, 0));
  EXPECT_TRUE(std::equal(from.begin() + 1000, from.begin() + 2000, to.begin()));
  EXPECT_TRUE(std::equal(from.begin(), from.begin() + 1000, to.begin() + 1000));
  EXPECT_EQ(to[2000], 0xee);

  EXPECT_EQ(coaccel_memcpy_start(device, -1, dst, src, size, 0), nullptr);
  expect_error("-1 pieces");
  EXPECT_EQ(coaccel_memcpy_start(device, 1, dst, nullptr, size, 0), nullptr);
  expect_error("a list is null");
  size_t beyond[] = {2001};
  EXPECT_EQ(coaccel_memcpy_start(device, 1, dst, src, beyond, 0), nullptr);
  expect_error("2001");
  Listener const listener;
  coaccel_device_free(device, there);
  coaccel_device_free(device, there);
  expect_error("not allocated");
  EXPECT_EQ(listener.warnings().size(), 1);
}

TEST_F(Coaccel, a_lock_keeps_other_threads_out_and_belongs_to_its_thread) {
  int inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        coaccel_device_lock(device);
        coaccel_device_lock(device);
        most = std::max(most, ++inside);
        --inside;
        coaccel_device_unlock(device);
        coaccel_device_unlock(device);
      }
    });
  for (auto& one : threads) one.join();
  EXPECT_EQ(most, 1);
  Listener const listener;
  coaccel_device_unlock(device);
  expect_error("has not locked it");
  coaccel_device_lock(device);
  std::thread([&] {
    coaccel_device_unlock(device);
    expect_error("has not locked it");
  }).join();
  coaccel_device_unlock(device);
}

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

// A stream of floats that is doubled on the device, in the style of the figures.
struct Doubling {
  std::vector<float> from, to;
  coaccel_pipeline pipeline = nullptr;
  int home = 0, last = 2;
  std::atomic<int> synced{0}, fail{0};
  coaccel_address dst{}, src{};  // lists of one piece: asked for one at a time
  size_t size{};

  char* at(int level, int direction, size_t idevice) {
    auto* const base = coaccel_pipeline_buffer(pipeline, level, direction);
    return base ? static_cast<char*>(base) + idevice : nullptr;
  }
  coaccel_memreq piece(void* target, void* source, size_t bytes) {
    dst = target, src = source, size = bytes;
    return {1, &dst, &src, &size};
  }
};
coaccel_memreq bring(int istage, size_t ihost, size_t idevice, size_t szchunk, void* data) {
  auto& work = *static_cast<Doubling*>(data);
  if (istage != 1) return {COACCEL_WHOLE, nullptr, nullptr, nullptr};
  return work.piece(work.at(1, COACCEL_IN, idevice),
                    reinterpret_cast<char*>(work.from.data()) + ihost, szchunk);
}
coaccel_memreq take_back(int istage, size_t ihost, size_t idevice, size_t szchunk, void* data) {
  auto& work = *static_cast<Doubling*>(data);
  if (istage != 0) return {COACCEL_WHOLE, nullptr, nullptr, nullptr};
  return work.piece(reinterpret_cast<char*>(work.to.data()) + ihost,
                    work.at(1, COACCEL_OUT, idevice), szchunk);
}
int start_doubling(int mode, size_t ihost, size_t idevice, void* data) {
  auto& work = *static_cast<Doubling*>(data);
  EXPECT_EQ(mode, COACCEL_START);
  auto const in = work.at(2, COACCEL_IN, idevice), out = work.at(2, COACCEL_OUT, idevice);
  size_t const size = std::min<size_t>(256, work.from.size() * 4 - ihost);
  std::vector<float> values(size / 4);
  auto const device = open_devices(on_gpus() ? "cuda:0" : "cpu:1").front();
  device->read(values.data(), in, Bytes{size});
  for (auto& value : values) value *= 2;
  device->write(out, values.data(), Bytes{size});
  return 0;
}
int end_doubling(int mode, size_t ihost, size_t, void* data) {
  EXPECT_EQ(mode, COACCEL_SYNC);
  auto& work = *static_cast<Doubling*>(data);
  ++work.synced;
  return ihost == 1024 ? work.fail.load() : 0;
}

TEST_F(Coaccel, a_pipeline_brings_chunks_down_computes_and_brings_them_back) {
  coaccel_device const devices[] = {host, pinned, device};
  auto const group = coaccel_group_init(3, devices, 2);
  Doubling work;
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 1003; ++i) work.from.push_back(static_cast<float>(random() % 1000));
  work.to.assign(1003, -1);
  work.pipeline = coaccel_pipeline_init(group, 1003 * 4, 256, 0, bring, take_back, start_doubling,
                                        end_doubling, &work);
  ASSERT_NE(work.pipeline, nullptr) << coaccel_last_error();
  EXPECT_EQ(coaccel_pipeline_buffer(work.pipeline, 0, COACCEL_IN), nullptr);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::fill(work.to.begin(), work.to.end(), -1.f);
    work.synced = 0;
    coaccel_pipeline_process(work.pipeline);
    EXPECT_EQ(work.synced, 16);
    for (u64 i = 0; i < work.to.size(); ++i) ASSERT_EQ(work.to[i], 2 * work.from[i]) << i;
  }
  Listener const listener;
  work.fail = 3;
  coaccel_pipeline_process(work.pipeline);
  expect_error("COMP^2 of chunk 4");
  coaccel_pipeline_done(work.pipeline);

  EXPECT_EQ(
      coaccel_pipeline_init(group, 100, 0, 0, bring, take_back, start_doubling, nullptr, &work),
      nullptr);
  expect_error("chunks of 0");
  EXPECT_EQ(coaccel_pipeline_init(group, 100, 10, 0, bring, take_back, nullptr, nullptr, &work),
            nullptr);
  expect_error("process_start_func is null");
  coaccel_group_done(group);
}

TEST_F(Coaccel, in_reverse_data_start_at_the_device) {
  coaccel_device const devices[] = {host, device};
  auto const group = coaccel_group_init(2, devices, 0);
  struct Case {
    char* memory;
    coaccel_pipeline pipeline = nullptr;
    coaccel_address dst{}, src{};
    size_t size{};
  } data{static_cast<char*>(coaccel_device_malloc(device, 1000))};
  std::vector<unsigned char> input(1000), output(1000);
  for (u64 i = 0; i < input.size(); ++i) input[i] = static_cast<unsigned char>(i * 7);
  auto const owner = open_devices(on_gpus() ? "cuda:0" : "cpu:1").front();
  owner->write(data.memory, input.data(), Bytes{1000});
  auto const save = [](int istage, size_t ihost, size_t idevice, size_t szchunk, void* user) {
    auto& self = *static_cast<Case*>(user);
    EXPECT_EQ(istage, 0);
    self.dst = static_cast<char*>(coaccel_pipeline_buffer(self.pipeline, 0, COACCEL_IN)) + idevice;
    self.src = self.memory + ihost, self.size = szchunk;
    return coaccel_memreq{1, &self.dst, &self.src, &self.size};
  };
  auto const load = [](int istage, size_t ihost, size_t idevice, size_t szchunk, void* user) {
    auto& self = *static_cast<Case*>(user);
    EXPECT_EQ(istage, 1);
    self.src = static_cast<char*>(coaccel_pipeline_buffer(self.pipeline, 0, COACCEL_OUT)) + idevice;
    self.dst = self.memory + ihost, self.size = szchunk;
    return coaccel_memreq{1, &self.dst, &self.src, &self.size};
  };
  auto const process = [](int, size_t ihost, size_t idevice, void* user) {
    auto& self = *static_cast<Case*>(user);
    auto const* const in =
        static_cast<char*>(coaccel_pipeline_buffer(self.pipeline, 0, COACCEL_IN)) + idevice;
    auto* const out =
        static_cast<char*>(coaccel_pipeline_buffer(self.pipeline, 0, COACCEL_OUT)) + idevice;
    for (size_t i = 0; i < std::min<size_t>(64, 1000 - ihost); ++i)
      out[i] = static_cast<char>(in[i] + 1);
    return 0;
  };
  data.pipeline = coaccel_pipeline_init(group, 1000, 64, 1, load, save, process, nullptr, &data);
  ASSERT_NE(data.pipeline, nullptr) << coaccel_last_error();
  coaccel_pipeline_process(data.pipeline);
  owner->read(output.data(), data.memory, Bytes{1000});
  for (u64 i = 0; i < input.size(); ++i)
    ASSERT_EQ(output[i], static_cast<unsigned char>(input[i] + 1)) << i;
  coaccel_pipeline_done(data.pipeline);
  coaccel_group_done(group);
}

TEST_F(Coaccel, devices_that_there_are_not_are_refused) {
  for (char const* name : {"cpu", "cpu:", "cpu:x", "tpu:0", "", "cpu:-1"}) {
    EXPECT_EQ(coaccel_device_open(name), nullptr) << name;
    EXPECT_NE(coaccel_last_error(), nullptr) << name;
  }
  EXPECT_EQ(coaccel_device_open(nullptr), nullptr);
  expect_error("name is null");
}

}  // namespace
}  // namespace meshpost::test
