// Threads that copy on the host.
#include "fabric/host_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "fabric/host_ways.hpp"
#include "support/bytes.hpp"

namespace meshpost::fabric {
namespace {

TEST(ThreadTeam, does_each_piece_once_for_several_callers_at_once) {
  for (u32 const threads : {1u, 2u, 5u}) {
    ThreadTeam team(threads);
    EXPECT_EQ(team.threads(), threads);
    std::vector<std::thread> callers;
    for (u64 caller = 0; caller < 4; ++caller)
      callers.emplace_back([&team, caller] {
        for (u64 pieces = 0; pieces < 60; ++pieces) {
          std::vector<u32> done(pieces, 0);  // plain: writes of a piece are visible after each()
          team.each(pieces, [&](u64 piece) { done[piece] += 1 + static_cast<u32>(caller); });
          EXPECT_EQ(std::ranges::count(done, 1 + caller), static_cast<i64>(pieces));
        }
      });
    for (auto& caller : callers) caller.join();
  }
}

TEST(ThreadTeam, does_not_wait_for_its_threads_when_they_are_busy) {
  ThreadTeam team(2);
  std::atomic<bool> free{false}, busy{false};
  std::thread holder([&] {
    team.each(2, [&](u64) {  // both the holder and the team's one thread stay in here
      busy = true;
      while (!free) std::this_thread::yield();
    });
  });
  while (!busy) std::this_thread::yield();
  std::atomic<u64> done{0};
  team.each(10, [&](u64) { ++done; });
  EXPECT_EQ(done, 10u);
  free = true;
  holder.join();
}

using Copying = std::function<void(ThreadTeam&, void*, void const*, Bytes)>;

// The target and its borders are filled with the complement of the expected bytes.
void check_copy(ThreadTeam& team, std::mt19937_64& random, u64 size, Copying const& copy) {
  constexpr u64 border = 128;
  u64 const to = random() % border, from = random() % border;
  auto const source = test::random_data(random, size + border);
  std::vector<u8> target(size + 2 * border, 0xa5);
  test::complement(target.data() + to, source.data() + from, size);
  copy(team, target.data() + to, source.data() + from, Bytes{size});
  EXPECT_TRUE(std::equal(target.begin() + static_cast<i64>(to),
                         target.begin() + static_cast<i64>(to + size),
                         source.begin() + static_cast<i64>(from)));
  auto const untouched = [](u8 byte) { return byte == 0xa5; };
  EXPECT_TRUE(std::all_of(target.begin(), target.begin() + static_cast<i64>(to), untouched));
  EXPECT_TRUE(std::all_of(target.begin() + static_cast<i64>(to + size), target.end(), untouched));
}

Copying in_way(HostWay way) {
  return [way](ThreadTeam& team, void* target, void const* source, Bytes size) {
    team.copy(target, source, size, way);
  };
}
void in_best_way(ThreadTeam& team, void* target, void const* source, Bytes size) {
  team.copy(target, source, size);
}

TEST(ThreadTeam, copies_every_byte_and_no_other) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (u32 const threads : {1u, 3u}) {
    ThreadTeam team(threads);
    for (u32 way = 0; way < host_ways; ++way) {
      SCOPED_TRACE(std::string(to_string(static_cast<HostWay>(way))));
      auto const copy = in_way(static_cast<HostWay>(way));
      for (u64 const size : {0, 1, 63, 64, 65, 4095, 262145, 524289}) {
        SCOPED_TRACE(size);
        check_copy(team, random, size, copy);
      }
      check_copy(team, random, random() % (u64{2} << 20), copy);
    }
  }
  ThreadTeam team(4);
  check_copy(team, random, (u64{32} << 20) + random() % 5000, in_best_way);
}

HostRates rates(u64 mib, std::array<double, host_ways> const& all) {
  return {Bytes{mib << 20}, all};
}

TEST(HostWays, go_by_what_was_measured_at_the_nearest_size) {
  std::vector<HostRates> const measured{rates(1, {1, 9, 3, 4, 5}), rates(16, {1, 2, 9, 4, 5}),
                                        rates(256, {1, 2, 3, 9, 5})};
  auto const way = [&](u64 kib) { return best_way(measured, Bytes{kib << 10}); };
  EXPECT_EQ(way(1), HostWay::memcpy_one) << "threads take longer to wake";
  EXPECT_EQ(way(1023), HostWay::memcpy_one);
  EXPECT_EQ(way(1024), HostWay::memcpy_shares);
  EXPECT_EQ(way(3 << 10), HostWay::memcpy_shares);
  EXPECT_EQ(way(5 << 10), HostWay::memcpy_slices);
  EXPECT_EQ(way(63 << 10), HostWay::memcpy_slices);
  EXPECT_EQ(way(65 << 10), HostWay::stream_one);
  EXPECT_EQ(way(u64{1} << 30), HostWay::stream_one);
}

TEST(HostWays, are_plain_memcpy_unless_others_are_clearly_faster) {
  std::vector<HostRates> const close{rates(64, {100, 90, 80, 109, 103})};
  EXPECT_EQ(best_way(close, Bytes{u64{64} << 20}), HostWay::memcpy_one);
  std::vector<HostRates> const faster{rates(64, {90, 100, 80, 115, 103})};
  EXPECT_EQ(best_way(faster, Bytes{u64{64} << 20}), HostWay::stream_one);
  EXPECT_EQ(best_way(faster, Bytes{u64{256} << 20}), HostWay::memcpy_shares)
      << "so far from what was measured it may have turned";
}

TEST(HostWays, of_one_core_are_chosen_where_the_others_are_busy) {
  std::vector<HostRates> const measured{rates(64, {1, 9, 3, 4, 5})};
  EXPECT_EQ(best_way(measured, Bytes{u64{64} << 20}, Cores::one), HostWay::stream_one);
  EXPECT_EQ(best_way({}, Bytes{u64{64} << 20}, Cores::one), HostWay::memcpy_one);
}

TEST(HostWays, are_memcpy_where_nothing_was_measured) {
  for (auto const& measured : {std::vector<HostRates>{}, {HostRates{}}}) {
    EXPECT_EQ(best_way(measured, Bytes{1000}), HostWay::memcpy_one);
    EXPECT_EQ(best_way(measured, Bytes{u64{64} << 20}), HostWay::memcpy_shares);
  }
}

TEST(HostWays, are_measured_up_to_the_size_given) {
  ThreadTeam team(2);
  auto const measured = measure_host_ways(team, Bytes{u64{4} << 20});
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_EQ(measured[0].size, u64{1} << 20);
  EXPECT_EQ(measured[1].size, u64{4} << 20);
  for (auto const& one : measured)
    for (double const rate : one.rates) EXPECT_TRUE(rate > 1e6 && rate < 1e14) << rate;
}

}  // namespace
}  // namespace meshpost::fabric
