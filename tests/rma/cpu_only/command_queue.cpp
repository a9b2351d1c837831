// The command queue of a device whose memory the host can't reach, without such a device. A thread
// replaces a waiting rank, and streams of a CPU device replace copy engines.
#include "rma/via/proxy/command_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "support/bytes.hpp"

namespace meshpost::detail {
namespace {

class CommandQueueTest : public testing::Test {
 protected:
  static constexpr u64 size = u64{2} << 20;

  // A copy of them that is overwritten when it is released.
  static Payload kept(std::vector<char> const& data) {
    auto* const copy = new std::vector<char>(data);
    return {{copy->data(), copy->size()}, {copy->data(), [copy](void const*) {
                                             std::ranges::fill(*copy, 0x66);
                                             delete copy;
                                           }}};
  }
  static Delivery put(void* target, std::string_view bytes, via::Signal const& count = {},
                      Keep keep = {}) {
    return {{.signal = count, .address = reinterpret_cast<u64>(target), .bytes = bytes.size()},
            bytes,
            std::move(keep)};
  }
  // A word of the test's, `distance` words before the one for the origin; 0: there is none.
  via::Signal count(u32 word, u32 value, u32 distance = 0) {
    return via::Signal::of(&words_[word], distance * sizeof(u32), value);
  }
  // Ranks that carry out commands until the test has ended them.
  void start_ranks(u32 count) {
    for (u32 i = 0; i < count; ++i)
      ranks_.emplace_back([this] {
        auto const command_queue = access_.command_queue();
        while (!stop_) {
          command_queue.poll({});
          std::this_thread::yield();
        }
      });
  }
  void start_rank() { start_ranks(1); }
  void end_rank() {
    stop_ = true;
    for (auto& rank : ranks_) rank.join();
    ranks_.clear();
  }
  void poll_until(auto const& done) {
    while (!done()) {
      access_.poll();
      std::this_thread::yield();
    }
  }
  void TearDown() override { end_rank(); }

  std::shared_ptr<Device> device_ = open_devices("cpu:1").front();
  CommandQueueAccess access_{*device_};
  std::vector<char> memory_ = std::vector<char>(size, 0x55);
  std::vector<u32> words_ = std::vector<u32>(64);
  std::vector<std::thread> ranks_;
  std::atomic<bool> stop_{false};
  std::mt19937_64 random_{std::random_device{}()};
};

class CommandQueueOfRanks : public CommandQueueTest, public testing::WithParamInterface<u32> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CommandQueueOfRanks, testing::Values(1, 3));

// Each notification guarantees all bytes before it: so the count of the rank is read first, then
// the bytes.
TEST_P(CommandQueueOfRanks, a_count_covers_all_bytes_that_were_delivered_before_it) {
  start_ranks(GetParam());
  constexpr u32 rounds = 400;
  std::vector<std::pair<u64, u64>> places;  // offset and size of each round
  std::vector<std::vector<char>> sent;
  u64 at = 0;
  for (u32 i = 0; i < rounds; ++i) {
    u64 const sizes[] = {1, 8, 128, 129, 4096, 1 + random_() % 20000};
    u64 const bytes = sizes[random_() % 6];
    if (at + bytes > size) break;
    auto const data = test::random_data<std::vector<char>>(random_, bytes);
    bool const in_pieces = bytes > 1000 && random_() % 2 == 0;
    u64 const half = in_pieces ? bytes / 2 : 0;
    if (in_pieces) access_.deliver(put(memory_.data() + at, {data.data(), half}));
    auto const rest = random_() % 2 == 0 ? kept(data) : Payload{{data.data(), bytes}};
    access_.deliver(
        put(memory_.data() + at + half, rest.bytes.substr(half), count(0, i + 1, 16), rest.keep));
    places.emplace_back(at, bytes);
    sent.push_back(std::move(data));
    at += bytes;
    if (random_() % 3 == 0) access_.poll();
    // All counted bytes have arrived.
    u32 const count = memory::load_acquire(&words_[0]);
    if (count > 0) {
      auto const [offset, length] = places[count - 1];
      ASSERT_EQ(std::memcmp(memory_.data() + offset, sent[count - 1].data(), length), 0) << count;
    }
  }
  poll_until([&] { return memory::load_acquire(&words_[0]) == places.size(); });
  for (u64 i = 0; i < places.size(); ++i)
    ASSERT_EQ(std::memcmp(memory_.data() + places[i].first, sent[i].data(), places[i].second), 0);
  poll_until([&] { return !access_.busy() && !access_.has_pending_commands(); });
  end_rank();
  EXPECT_EQ(words_[16], places.size());
}

// A count alone takes the first 16 bytes of a command (Signal).
TEST_F(CommandQueueTest, counts_alone_say_who_has_raised_them) {
  auto const raise = [&](u32 sender) { access_.deliver({{.signal = count(0, sender, 32)}}); };
  start_rank();
  for (u32 sender = 1; sender <= 3 * CommandQueue::capacity; ++sender) {
    raise(sender);
    if (sender % 7 == 0) access_.deliver({{.signal = count(0, 100)}});
  }
  u32 const expected = 3 * CommandQueue::capacity + 3 * CommandQueue::capacity / 7 * 100;
  poll_until([&] { return memory::load_acquire(&words_[0]) == expected; });
  poll_until([&] { return !access_.busy() && !access_.has_pending_commands(); });
  end_rank();
  EXPECT_EQ(words_[32], 3 * CommandQueue::capacity);
  raise(77);  // the host carries it out
  access_.end();
  EXPECT_EQ(words_[0], expected + 1);
  EXPECT_EQ(words_[32], 77u);
}

TEST_F(CommandQueueTest, more_commands_than_there_is_room_for_wait_their_turn) {
  constexpr u32 many = 3 * CommandQueue::capacity;
  for (u32 i = 0; i < many; ++i) access_.deliver({{.signal = count(0, 2)}});
  EXPECT_FALSE(access_.busy()) << "only ranks can get it on: at a run's end nobody waits for them";
  EXPECT_TRUE(access_.has_pending_commands());
  start_rank();
  poll_until([&] { return memory::load_acquire(&words_[0]) == 2 * many; });
  poll_until([&] { return !access_.busy() && !access_.has_pending_commands(); });
}

// Short bytes wait for a rank in commands, long ones are copied at once.
TEST_F(CommandQueueTest, bytes_for_the_same_place_come_in_their_order) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a copy may store over what an earlier command stores at the same time";
#endif
  for (bool const by_rank : {true, false}) {
    access_.begin();
    auto expected = memory_;
    for (u32 i = 0; i < 2000; ++i) {  // there is no room for all
      constexpr u64 address = 5000;
      u64 const sizes[] = {1, 8, 1 + random_() % via::Message::most_inline,
                           via::Message::most_inline + 1, 1 + random_() % address};
      auto const data = test::random_data<std::vector<char>>(random_, sizes[random_() % 5]);
      u64 const at = random_() % (address - data.size() + 1);
      auto const sent = random_() % 2 == 0 ? kept(data) : Payload{{data.data(), data.size()}};
      access_.deliver(put(memory_.data() + at, sent.bytes, {}, sent.keep));
      std::ranges::copy(data, expected.data() + at);
      if (random_() % 5 == 0) access_.poll();
    }
    access_.deliver({{.signal = count(0, 1)}});
    while (by_rank && words_[0] == 0) {
      access_.poll();  // begins as much as there is room for
      bool copied = false;
      access_.write(&words_[3], "1234", nullptr, [&copied] { copied = true; });
      poll_until([&copied] { return copied; });
      for (u32 i = 0; i < 2 * CommandQueue::capacity; ++i) access_.command_queue().poll({});
    }
    if (!by_rank) access_.end();
    EXPECT_TRUE(memory_ == expected)
        << (by_rank ? "carried out by a rank" : "carried out at the end");
  }
}

TEST_F(CommandQueueTest, what_is_kept_is_let_go_though_no_rank_carries_out_commands) {
  std::vector<char> const data(50'000, 7);
  for (u32 i = 0; i < CommandQueue::capacity + 20; ++i) {  // no room for the last one
    auto sent = kept(data);
    std::weak_ptr<void const> const lent = sent.keep;
    access_.deliver(put(memory_.data() + i, sent.bytes, count(0, 1), std::move(sent.keep)));
    poll_until([&] { return lent.expired() && !access_.busy(); });
  }
  access_.end();
  EXPECT_EQ(words_[0], CommandQueue::capacity + 20);
  EXPECT_EQ(memory_[data.size() + CommandQueue::capacity + 18], 7);
}

TEST_F(CommandQueueTest, words_of_every_width_are_stored_alone) {
  start_rank();
  for (u32 const width : {1u, 2u, 4u, 8u}) {
    std::memset(memory_.data(), 0x55, 16);
    u64 const value = 0x1122334455667788;
    auto word = put(memory_.data() + 8, {reinterpret_cast<char const*>(&value), width});
    word.message.type = via::Message::Type::store;
    access_.deliver(word);
    access_.deliver({{.signal = count(2, 1)}});
    poll_until([&] { return !access_.has_pending_commands(); });
    EXPECT_EQ(std::memcmp(memory_.data() + 8, &value, width), 0);
    for (u32 i = 8 + width; i < 16; ++i) EXPECT_EQ(memory_[i], 0x55);
  }
}

TEST_F(CommandQueueTest, what_no_rank_has_carried_out_the_host_does_at_the_end) {
  std::vector<char> const data(300000, 7);
  access_.deliver(put(memory_.data(), {data.data(), 100000}));
  access_.deliver(put(memory_.data() + 100000, {data.data(), 200000}, count(0, 9, 16)));
  for (u32 i = 0; i < CommandQueue::capacity + 5; ++i)
    access_.deliver(put(memory_.data() + 300000 + i, {data.data(), 1}, count(2, 1)));
  access_.end();
  EXPECT_EQ(std::memcmp(memory_.data(), data.data(), data.size()), 0);
  EXPECT_EQ(words_[0], 1u);
  EXPECT_EQ(words_[16], 9u);
  EXPECT_EQ(words_[2], CommandQueue::capacity + 5);
  EXPECT_EQ(memory_[300000 + CommandQueue::capacity + 4], 7);
  EXPECT_EQ(memory_[300000 + CommandQueue::capacity + 5], 0x55);
  access_.begin();  // the next run finds it empty
  EXPECT_FALSE(access_.has_pending_commands());
  EXPECT_FALSE(access_.busy());
}

TEST_F(CommandQueueTest, reads_end_in_their_order_and_writes_say_when) {
  auto const data = test::random_data<std::vector<char>>(random_, Access::largest);
  u32 written = 0, read = 0;
  constexpr u32 many = 40;  // more than there are chunks
  for (u32 i = 0; i < many; ++i) {
    u64 const bytes = 1 + random_() % 40000;
    std::vector<char> const part(data.data() + i, data.data() + i + bytes);
    auto const from = i % 3 == 0 ? kept(part) : Payload{{part.data(), bytes}};
    access_.write(memory_.data() + i * 45000, from.bytes, from.keep, [&written] { ++written; });
  }
  poll_until([&] { return written == many; });
  std::deque<Payload> lent;  // some are kept for a while
  for (u32 i = 0; i < many; ++i)
    access_.read(memory_.data() + i * 45000, 1, [&, i](std::string_view bytes, Keep const& keep) {
      EXPECT_EQ(read++, i);
      EXPECT_EQ(bytes[0], data[i]);
      lent.push_back({bytes, keep});
    });
  u32 let_go = 0;
  poll_until([&] {
    for (; lent.size() > 10 || (read == many && !lent.empty()); lent.pop_front())
      EXPECT_EQ(lent.front().bytes[0], data[let_go++]) << "though others have been read since";
    return read == many;
  });
  EXPECT_EQ(let_go, many);
  EXPECT_FALSE(access_.busy());
}

}  // namespace
}  // namespace meshpost::detail
