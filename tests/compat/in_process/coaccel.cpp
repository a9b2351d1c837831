#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "compat/in_process/coaccel.hpp"
#include "support/bytes.hpp"
#include "support/sink.hpp"

namespace meshpost::test {
namespace {

TEST_F(Coaccel, memcpy_moves_lists_there_and_back) {
  std::mt19937_64 random(std::random_device{}());
  auto from = random_data(random, 3000);
  std::vector<unsigned char> to(3000, 0xee);
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

TEST_F(Coaccel, a_locked_device_keeps_other_threads_from_memory_and_copies) {
  std::vector<unsigned char> from(1000, 7);
  auto* const there = coaccel_device_malloc(device, 1000);
  std::atomic<bool> unlocked{false};
  std::atomic<int> early{0}, through{0};
  auto const one = [&](auto const& call) {
    return std::thread([&, call] {
      call();
      if (!unlocked) ++early;
      ++through;
    });
  };
  coaccel_device_lock(device);
  coaccel_device_free(device, coaccel_device_malloc(device, 10));  // not blocked from its own
  std::thread threads[] = {
      one([&] { coaccel_device_free(device, coaccel_device_malloc(device, 10)); }), one([&] {
        coaccel_address dst[] = {there}, src[] = {from.data()};
        size_t size[] = {1000};
        coaccel_memcpy_finish(device, coaccel_memcpy_start(device, 1, dst, src, size, 0));
      })};
  // Long enough for both to finish if nothing blocked them. A shorter time finds less, but never
  // fails wrongly.
  for (int i = 0; i < 50 && through < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  unlocked = true;
  coaccel_device_unlock(device);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(early, 0);
  EXPECT_EQ(through, 2);
}

TEST_F(Coaccel, a_sink_that_throws_ends_nothing) {
  struct Throwing : EventSink {
    void warning(std::string_view) override { throw std::runtime_error("planted"); }
    void log(unsigned, std::string_view) override {}
  };
  auto const before = set_event_sink(std::make_shared<Throwing>());
  testing::internal::CaptureStderr();
  coaccel_device_unlock(device);
  auto const said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("has not locked it"), said.npos) << said;
  expect_error("has not locked it");
  set_event_sink(before);
}

// A stream of floats that the device doubles, in the style of the figures.
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
  // This program has no MPI; the tests of MPI devices are in tests/mpi.
  EXPECT_EQ(coaccel_device_open("mpi:1"), nullptr);
  expect_error(MESHPOST_TEST_MPI ? "call coaccel_mpi_init(comm)"
                                 : "configure with -DMESHPOST_MPI=ON");
}

}  // namespace
}  // namespace meshpost::test
