// Lanes alone: the ends of one sender and one target, in memory of the test. All programs of
// tests/rma run on them, too (rma.lanes).
#include "rma/via/lane/keeper.hpp"

#include <gtest/gtest.h>
#include <meshpost/meshpost.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/bytes.hpp"
#include "support/worlds.hpp"

namespace meshpost::detail {
namespace {

constexpr u32 origin = 0, target = 1;
constexpr u64 heap_bytes = u64{1} << 20, data_at = 0, counters = heap_bytes / 2;
constexpr u32 senders_at = 1;  // lines behind the counters

u64 seed_of_test() {
  char const* const text = std::getenv("MESHPOST_TEST_SEED");
  return text ? std::stoull(text) : std::random_device{}();
}

// Two devices with one rank each, as in the states of their runs.
class LanesTest : public testing::Test {
 protected:
  LanesTest() { fill(0); }

  // `before`: packets that the lane has passed in earlier runs.
  void fill(u32 before, u32 shift = 6) {
    std::ranges::fill(memory_, 0x55);
    Lanes lanes{1, shift, 64};
    u64 at = counters + 1024;
    auto const place = [&](u64 bytes) {
      u64 const here = std::exchange(at, at + (bytes + 63) / 64 * 64);
      for (u32 device = 0; device < 2; ++device) std::memset(base(device) + here, 0, bytes);
      return here;
    };
    lanes.rings = place(lanes.packets() * sizeof(Packet));
    lanes.taken = place(sizeof(u32));
    lanes.claims = place(sizeof(u32));
    lanes.owners = place(sizeof(u64));
    lanes.credits = place(2 * sizeof(u32));
    lanes.outs = place(2 * sizeof(LaneOut));
    for (u32 device = 0; device < 2; ++device) {
      auto& state = states_[device];
      state.heap = memory_.data();
      state.stride = heap_bytes;
      state.device = device;
      state.devices = state.ranks = 2;
      state.ranks_per_device = 1;
      state.reciprocal = RunState::reciprocal_of(1);
      state.lanes = lanes;
      std::memset(base(device) + counters, 0, 1024);
    }
    *end(target).taken(0) = before;
    for (u32 i = 0; i < lanes.packets(); ++i)  // as the previous lap has left them
      for (u32 k = 0; before != 0 && k < 4; k += 2)
        end(target).ring(0)[i].word[k + 1] = Lanes::flag(before - lanes.packets() + i, shift);
  }

  char* base(u32 device) { return memory_.data() + device * heap_bytes; }
  LaneEnd end(u32 rank) { return {states_[rank], rank}; }
  Packet* packet(u32 position) {
    return end(target).ring(0) + Lanes::index(position, states_[target].lanes.shift);
  }
  static u32 packets_of(u64 bytes) { return LaneHeader{0, 0, static_cast<u32>(bytes)}.packets(); }
  bool send(u64 offset, std::string const& bytes, u32 tag = 0) {
    LaneHeader const header{data_at + offset, counters / 4 + tag, static_cast<u32>(bytes.size()),
                            senders_at};
    auto const& state = states_[origin];
    auto& out = end(origin).out(target);
    if (!hold(state, target, out).has_room(target, header.packets()))
      refresh(state, {.sender = origin, .target = target}, out);
    auto const held = hold(state, target, out);
    if (!held.has_room(target, header.packets())) return false;
    store_message(held, state.lanes.shift, header, bytes.data(), 0, 1);
    out.sent += header.packets();
    return true;
  }
  bool take() { return take_from_lane(states_[target], end(target), 0); }
  std::string at_target(u64 offset, u64 bytes) { return {base(target) + data_at + offset, bytes}; }
  u32 count(u32 tag = 0) { return reinterpret_cast<u32*>(base(target) + counters)[tag]; }
  std::string random_bytes(u64 size) { return test::random_data<std::string>(random_, size); }

  u64 const seed_ = seed_of_test();
  std::mt19937_64 random_{seed_};
  testing::ScopedTrace const trace_{__FILE__, __LINE__,
                                    "MESHPOST_TEST_SEED=" + std::to_string(seed_)};
  std::vector<char> memory_ = std::vector<char>(2 * heap_bytes);
  RunState states_[2];
};

TEST_F(LanesTest, carry_every_size_to_every_place_and_name_the_sender) {
  for (u32 size = 0; size <= 64; ++size)
    for (u32 offset : {0u, 1u, 2u, 3u, 1000u}) {
      auto const bytes = random_bytes(size);
      std::memset(base(target) + data_at, 0x55, 2000);
      u32 const before = count(7);
      ASSERT_TRUE(send(offset + 1, bytes, 7));
      ASSERT_TRUE(take());
      ASSERT_FALSE(take());
      ASSERT_EQ(at_target(offset + 1, size), bytes);
      ASSERT_EQ(at_target(offset, 1) + at_target(offset + 1 + size, 1), "\x55\x55");
      ASSERT_EQ(count(7), before + 1);
      ASSERT_EQ(count(7 + senders_at * LaneHeader::line / 4), WindowInfo::raiser(origin));
    }
}

TEST_F(LanesTest, take_what_is_there_in_order_and_refuse_what_has_no_room) {
  u32 const all = states_[0].lanes.packets() / packets_of(1);
  for (u32 i = 0; i < all; ++i)
    ASSERT_TRUE(send(i, std::string(1, static_cast<char>('a' + i)), i % 8)) << i;
  EXPECT_FALSE(send(99, "x"));
  EXPECT_EQ(at_target(0, 4), "\x55\x55\x55\x55");
  EXPECT_TRUE(lanes_have_news(states_[target], target));
  ASSERT_TRUE(take());
  EXPECT_EQ(at_target(0, 4), "a\x55\x55\x55");
  ASSERT_TRUE(send(all, "z", 8));
  EXPECT_FALSE(send(99, "x"));
  take_from_lanes(states_[target], target);
  for (u32 tag = 0; tag <= 8; ++tag) EXPECT_EQ(count(tag), tag < 8 ? all / 8 : 1) << tag;
  EXPECT_EQ(at_target(0, 5), "abcde");
  EXPECT_FALSE(lanes_have_news(states_[target], target));
}

// Words of a message may become visible in any order: it is not taken before the last one.
TEST_F(LanesTest, deliver_nothing_before_the_last_word_has_come_in_whatever_order) {
  for (u32 round = 0; round < 3000; ++round) {
    auto const bytes = random_bytes(random_() % 65);
    u32 const begin = *end(target).taken(0), packets = packets_of(bytes.size());
    std::vector<u64*> words;
    for (u32 i = 0; i < packets; ++i)
      for (u32 k = 0; k < 2; ++k) words.push_back(reinterpret_cast<u64*>(packet(begin + i)) + k);
    std::vector<u64> before, after;
    for (u64 const* word : words) before.push_back(*word);
    ASSERT_TRUE(send(round % 100, bytes));
    for (u64 const* word : words) after.push_back(*word);
    for (u32 i = 0; i < words.size(); ++i) *words[i] = before[i];
    std::vector<u32> order(words.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::shuffle(order, random_);
    for (u32 const i : order) {
      ASSERT_NE(before[i], after[i]);  // padding, too
      ASSERT_FALSE(take());
      *words[i] = after[i];
    }
    ASSERT_TRUE(take());
    ASSERT_EQ(*end(target).taken(0), begin + packets);
    ASSERT_EQ(at_target(round % 100, bytes.size()), bytes);
    ASSERT_FALSE(take());
  }
}

// Positions pass 2^32 and flags start again, for messages of all sizes.
TEST_F(LanesTest, count_past_the_end_of_their_positions) {
  for (u32 const before : {u32{0} - 6016, u32{1} << 31, u32{0}}) {
    fill(before);
    u32 sent = 0, packets = 0;
    for (; sent < 3000; ++sent) {
      auto const bytes = random_bytes(random_() % 50 == 0 ? 64 : random_() % 4);
      ASSERT_TRUE(send(0, bytes));
      ASSERT_TRUE(take());
      ASSERT_FALSE(take());
      ASSERT_EQ(at_target(0, bytes.size()), bytes);
      packets += packets_of(bytes.size());
    }
    EXPECT_EQ(count(), sent);
    EXPECT_EQ(*end(target).taken(0), before + packets);
  }
}

TEST_F(LanesTest, step_over_what_a_failed_run_has_left) {
  ASSERT_TRUE(send(0, "never"));
  ASSERT_TRUE(send(8, "taken"));
  u32 const before = *end(target).taken(0);
  auto const device = backend("cpu").open(0);
  LaneKeeper::reset(states_[target], *device);
  EXPECT_EQ(*end(target).taken(0), before + states_[target].lanes.packets());
  *end(target).claims() = 0;  // as the next run finds it
  end(origin).out(target) = {};
  *end(origin).credit(target) = 0;
  EXPECT_FALSE(take());
  ASSERT_TRUE(send(16, "new"));
  EXPECT_TRUE(take());
  EXPECT_FALSE(take());
  EXPECT_EQ(at_target(16, 3), "new");
  EXPECT_EQ(at_target(0, 1), "\x55");
}

// Two threads, as sender and target; MESHPOST_TEST_MESSAGES makes it longer.
TEST_F(LanesTest, keep_up_with_random_messages_between_threads) {
  char const* const wanted = std::getenv("MESHPOST_TEST_MESSAGES");
  u64 const messages = wanted ? std::stoull(wanted) : 100'000;
  constexpr u64 places = 256;
  auto const size_of = [](u64 i) { return static_cast<u32>(test::mixed(i, 1) % 65); };
  auto const byte_of = [](u64 i, u64 b) { return static_cast<char>(test::mixed(i, b)); };
  fill(static_cast<u32>(random_()) & ~63u);
  std::jthread const other([&] {
    std::string bytes;
    for (u64 i = 0; i < messages; ++i) {
      bytes.resize(size_of(i));
      for (u64 b = 0; b < bytes.size(); ++b) bytes[b] = byte_of(i, b);
      while (!send(i % places * 64, bytes, static_cast<u32>(i % 5))) std::this_thread::yield();
    }
  });
  u64 wrong = 0, counts[5] = {};
  for (u64 i = 0; i < messages; ++i) {
    while (!take()) std::this_thread::yield();
    auto const* const bytes = base(target) + data_at + i % places * 64;
    for (u64 b = 0; b < size_of(i); ++b) wrong += bytes[b] != byte_of(i, b);
    wrong += count(static_cast<u32>(i % 5)) != static_cast<u32>(++counts[i % 5]);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(take());
}

TEST(LaneVotesCpuOnly, are_for_lanes_if_one_gains_and_none_can_not) {
  auto const layout = make_layout("cpu:2", 1);
  Heap heap(layout, nullptr);
  LaneKeeper keeper(std::nullopt, layout, heap);
  EXPECT_EQ(keeper.size().value, 0);  // CPU devices do not profit
  auto const idle = keeper.vote({}, layout, heap);
  EXPECT_FALSE(LaneKeeper::agreed({idle, idle}));
  EXPECT_TRUE(LaneKeeper::agreed({idle, "gains"}));
  EXPECT_FALSE(LaneKeeper::agreed({"gains", "can't"}));
}

}  // namespace
}  // namespace meshpost::detail
