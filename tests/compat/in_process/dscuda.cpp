#include "meshpost/compat/dscuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/bytes.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost::test {
namespace {

struct Buffers {
  std::vector<std::shared_ptr<Device>> devices = open_devices(test::devices());
  std::vector<Allocation> memories;
  std::vector<void*> pointers;

  Buffers(u64 count, u64 size) {
    for (u64 i = 0; i < count; ++i) {
      memories.push_back(devices[i % devices.size()]->allocate(Bytes{size}, MemoryKind::device));
      pointers.push_back(memories.back().data());
      devices[i % devices.size()]->fill(pointers.back(), 0xee, Bytes{size});
    }
  }
  std::vector<u8> read(u64 i) {
    std::vector<u8> bytes(memories[i].size());
    devices[i % devices.size()]->read(bytes.data(), pointers[i], memories[i].size());
    return bytes;
  }
};

std::vector<u8> bytes_of(u64 seed, u64 size) {
  std::mt19937_64 random(seed);
  return test::random_data(random, size);
}

TEST(Dscuda, memcopies_moves_each_source_to_its_destination) {
  auto const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::vector<int> counts = {1, 1000, 0, 70000, 33};
  std::vector<std::vector<u8>> sources;
  std::vector<void*> source_pointers;
  for (auto const count : counts) {
    sources.push_back(bytes_of(seed + sources.size(), static_cast<u64>(count)));
    source_pointers.push_back(sources.back().data());
  }
  Buffers targets(counts.size(), 70000), back(counts.size(), 70000);
  auto const n = static_cast<int>(counts.size());
  ASSERT_EQ(dscudaMemcopies(targets.pointers.data(), source_pointers.data(), counts.data(), n), 0)
      << dscudaLastError();
  std::vector<size_t> const wide(counts.begin(), counts.end());
  ASSERT_EQ(
      dscudaMemcopies64(back.pointers.data(), targets.pointers.data(), wide.data(), wide.size()), 0)
      << dscudaLastError();
  for (u64 i = 0; i < counts.size(); ++i) {
    auto expected = sources[i];
    expected.resize(70000, 0xee);
    EXPECT_EQ(targets.read(i), expected);
    EXPECT_EQ(back.read(i), expected);
  }
  EXPECT_EQ(dscudaMemcopies(nullptr, nullptr, nullptr, 0), 0);
}

TEST(Dscuda, broadcast_reaches_every_destination) {
  for (int count = 0; count <= 9; ++count) {
    auto source = bytes_of(std::random_device{}(), 5000);
    Buffers targets(static_cast<u64>(count), 5000);
    ASSERT_EQ(dscudaBroadcast(targets.pointers.data(), source.data(), 5000, count), 0)
        << dscudaLastError();
    for (u64 i = 0; i < static_cast<u64>(count); ++i) ASSERT_EQ(targets.read(i), source);
    Buffers again(static_cast<u64>(count), 5000);
    ASSERT_EQ(dscudaBroadcast64(again.pointers.data(), source.data(), 4999, again.pointers.size()),
              0);
    source.back() = 0xee;
    for (u64 i = 0; i < static_cast<u64>(count); ++i) ASSERT_EQ(again.read(i), source);
  }
}

// Checks the result of a failing call: it must have given the reason, called the handler, and
// changed nothing.
void expect_refused(int code, std::string const& piece, int& handled) {
  EXPECT_NE(code, 0);
  EXPECT_NE(std::string(dscudaLastError()).find(piece), std::string::npos) << dscudaLastError();
  EXPECT_EQ(std::exchange(handled, 0), 1);
}

TEST(Dscuda, hazards_and_wrong_arguments_are_refused_before_anything_moves) {
  int handled = 0;
  dscudaSetErrorHandler([](void* count) { ++*static_cast<int*>(count); }, &handled);
  Buffers memory(3, 100);
  auto const p = [&](u64 i, u64 offset = 0) -> void* {
    return static_cast<char*>(memory.pointers[i]) + offset;
  };
  auto const before = std::vector{memory.read(0), memory.read(1), memory.read(2)};
  auto source = bytes_of(1, 100);
  int counts[] = {100, 100};
  void* same[] = {p(0), p(0, 50)};
  int halves[] = {60, 50};
  void* sources[] = {source.data(), source.data()};
  expect_refused(dscudaMemcopies(same, sources, halves, 2), "overlap", handled);
  void* chain_to[] = {p(1), p(2)};
  void* chain_from[] = {p(0), p(1)};
  expect_refused(dscudaMemcopies(chain_to, chain_from, counts, 2), "overlap", handled);
  int negative[] = {100, -1};
  expect_refused(dscudaMemcopies(chain_to, sources, negative, 2), "a count is -1", handled);
  expect_refused(dscudaMemcopies(chain_to, sources, counts, -2), "ncopies is -2", handled);
  expect_refused(dscudaMemcopies(nullptr, sources, counts, 2), "a list is null", handled);
  expect_refused(dscudaMemcopies(chain_to, sources, nullptr, 2), "counts is null", handled);
  void* null_target[] = {nullptr, p(1)};
  expect_refused(dscudaMemcopies(null_target, sources, counts, 2), "null", handled);
  int beyond[] = {101, 1};
  expect_refused(dscudaMemcopies(chain_to, chain_from, beyond, 1), "100", handled);
  expect_refused(dscudaBroadcast(same, source.data(), 60, 2), "overlap", handled);
  expect_refused(dscudaBroadcast(chain_to, p(1), 100, 2), "overlap", handled);
  expect_refused(dscudaBroadcast(nullptr, p(1), 100, 2), "null", handled);
  dscudaSetErrorHandler(nullptr, nullptr);
  for (u64 i = 0; i < 3; ++i) EXPECT_EQ(memory.read(i), before[i]);
}

TEST(Dscuda, a_handler_that_throws_is_a_warning_and_the_code_is_returned) {
  Listener const listener;
  dscudaSetErrorHandler([](void*) { throw std::runtime_error("planted"); }, nullptr);
  EXPECT_NE(dscudaMemcopies(nullptr, nullptr, nullptr, 1), 0);
  EXPECT_NE(std::string(dscudaLastError()).find("counts is null"), std::string::npos);
  ASSERT_EQ(listener.warnings().size(), 1);
  EXPECT_NE(listener.warnings()[0].find("planted"), std::string::npos);
  dscudaSetErrorHandler([](void*) { throw 42; }, nullptr);
  EXPECT_NE(dscudaMemcopies(nullptr, nullptr, nullptr, -1), 0);
  EXPECT_EQ(listener.warnings().size(), 2);
  dscudaSetErrorHandler(nullptr, nullptr);
}

}  // namespace
}  // namespace meshpost::test
