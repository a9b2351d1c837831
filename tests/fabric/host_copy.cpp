// Threads that copy on the host.
#include "fabric/host_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

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
          std::vector<u32> done(pieces, 0);  // plain: what a piece wrote is visible after each()
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

// All of the target is poisoned with the complement of what should come, and so are its borders.
void check_copy(ThreadTeam& team, std::mt19937_64& random, u64 size) {
  constexpr u64 border = 128;
  u64 const to = random() % border, from = random() % border;
  std::vector<unsigned char> source(size + border), target(size + 2 * border);
  u64 word = 0;
  for (u64 i = 0; i < source.size(); ++i) {
    if (i % 8 == 0) word = random();
    source[i] = static_cast<unsigned char>(word >> (i % 8 * 8));
  }
  std::ranges::fill(target, 0xa5);
  for (u64 i = 0; i < size; ++i) target[to + i] = static_cast<unsigned char>(~source[from + i]);
  team.copy(target.data() + to, source.data() + from, Bytes{size});
  EXPECT_TRUE(std::equal(target.begin() + static_cast<i64>(to),
                         target.begin() + static_cast<i64>(to + size),
                         source.begin() + static_cast<i64>(from)));
  auto const untouched = [](unsigned char byte) { return byte == 0xa5; };
  EXPECT_TRUE(std::all_of(target.begin(), target.begin() + static_cast<i64>(to), untouched));
  EXPECT_TRUE(std::all_of(target.begin() + static_cast<i64>(to + size), target.end(), untouched));
}

TEST(ThreadTeam, copies_every_byte_and_no_other) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  ThreadTeam team(4);
  for (u64 const size : {0, 1, 63, 64, 65, 4095, 262143, 262144, 262145, 1048577}) {
    SCOPED_TRACE(size);
    check_copy(team, random, size);
  }
  for (int i = 0; i < 20; ++i) check_copy(team, random, random() % (u64{3} << 20));
  check_copy(team, random, (u64{64} << 20) + random() % 5000);  // past the caches
}

}  // namespace
}  // namespace meshpost::fabric
