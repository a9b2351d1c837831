// What becomes of copies on both sides where one message of theirs is lost, or one side throws.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

#include "copy/job/desk.hpp"
#include "net/letters.hpp"
#include "net/lossy_line.hpp"
#include "support/errors.hpp"

namespace meshpost::test {
namespace {

using copying::Desk;
using copying::Message;
using namespace std::chrono_literals;

struct Shelf final : copying::Store {
  void write(u32, u64 offset, std::string_view all) override {
    if (fails) throw std::runtime_error("the shelf broke");
    std::ranges::copy(all, bytes.begin() + static_cast<i64>(offset));
  }
  void read(u32, u64 offset, char* target, u64 size) override {
    if (fails) throw std::runtime_error("the shelf broke");
    std::memcpy(target, bytes.data() + offset, size);
  }
  std::vector<char> bytes = std::vector<char>(100'000, 'a');
  bool fails = false;
};

struct DeskLosses : testing::Test {
  DeskLosses() {
    std::unique_ptr<Letters> ways[2];
    std::unique_ptr<LossyLine> ends[2];
    for (u32 i = 0; i < 2; ++i) {
      ways[i] = std::make_unique<Letters>();
      ends[i] = std::make_unique<LossyLine>(random, i);
      ways[i]->self = i;
      lines[i] = ends[i].get();
    }
    for (u32 i = 0; i < 2; ++i)
      ways[i]->other = ways[1 - i].get(), ends[i]->other = ends[1 - i].get();
    auto const name = [](u32 process) { return "process " + std::to_string(process); };
    for (u32 i = 0; i < 2; ++i)
      desks[i] = std::make_unique<Desk>(std::move(ends[i]), shelves[i], 2, name, std::move(ways[i]),
                                        200ms);
  }
  // A large copy at each side.
  void begin() {
    copies[0] = desks[0]->ask({Message::Kind::put, 1, 5, 0, here[0].data(), here[0].size()});
    copies[1] = desks[1]->ask({Message::Kind::get, 0, 5, 0, here[1].data(), here[1].size()});
  }
  void expect_both_end(std::string_view why) {
    for (auto const until = std::chrono::steady_clock::now() + 20s;
         std::chrono::steady_clock::now() < until && !(copies[0]->done() && copies[1]->done());
         std::this_thread::sleep_for(50us))
      for (auto const& desk : desks) desk->work();
    for (u32 i = 0; i < 2; ++i) {
      ASSERT_TRUE(copies[i]->done());
      EXPECT_TRUE(says(error_of([&] { copies[i]->wait(); }), Kind::peer_lost,
                       {"copy", "process " + std::to_string(1 - i), why, "start the job again"}));
      EXPECT_TRUE(desks[i]->idle());
    }
    begin();  // later ones end at once
    for (auto const& desk : desks) desk->work();
    for (u32 i = 0; i < 2; ++i) EXPECT_TRUE(copies[i]->done());
  }
  std::mt19937_64 random{std::random_device{}()};
  Shelf shelves[2];
  std::vector<char> here[2] = {std::vector<char>(100'000, 'b'), std::vector<char>(100'000, 'b')};
  LossyLine* lines[2];
  std::unique_ptr<Desk> desks[2];
  copying::StatePtr copies[2];
};

TEST_F(DeskLosses, of_a_message_end_the_copies_of_both_sides_whichever_lost_it) {
  begin();
  u32 seen = 0;
  lines[random() % 2]->copies = [&](LossyLine::Event&) { return ++seen == 5 ? 0u : 1u; };
  expect_both_end("the network lost message ");
  for (u32 i = 0; i < 2; ++i) {
    auto const error = error_of([&] { copies[i]->wait(); });
    EXPECT_TRUE(says(error, Kind::peer_lost, {"raise MESHPOST_PEER_DEADLINE (seconds)"}));
  }
}

TEST_F(DeskLosses, by_a_changed_message_end_the_copies_of_both_sides) {
  begin();
  u32 seen = 0;
  lines[random() % 2]->copies = [&](LossyLine::Event& event) {
    if (++seen == 5) event.bytes.back() = static_cast<char>(event.bytes.back() ^ 4);
    return 1u;
  };
  expect_both_end("it was changed on its way");
}

TEST_F(DeskLosses, by_a_side_that_throws_half_way_end_the_copies_of_both_sides) {
  begin();
  for (u32 i = 0; i < 20; ++i)
    for (auto const& desk : desks) desk->work();
  shelves[random() % 2].fails = true;
  expect_both_end("the shelf broke");
}

// A side gives up all its copies for a reason of its own, while pieces of both are under way. The
// other side hears that reason, and is not blamed for its answers, which nobody waits for any more.
TEST_F(DeskLosses, by_a_side_that_gives_all_up_end_the_copies_of_both_sides_with_its_reason) {
  begin();
  while (lines[0]->arrived.empty() || lines[1]->arrived.empty())
    for (auto const& desk : desks) desk->work();
  desks[0]->fail_all({Kind::peer_lost, "copy", "process 7 is gone", "start the job again"});
  for (auto const until = std::chrono::steady_clock::now() + 20s;
       std::chrono::steady_clock::now() < until && !copies[1]->done();
       std::this_thread::sleep_for(50us))
    for (auto const& desk : desks) desk->work();
  for (u32 i = 0; i < 2; ++i) {
    ASSERT_TRUE(copies[i]->done());
    EXPECT_TRUE(says(error_of([&] { copies[i]->wait(); }), Kind::peer_lost,
                     {"copy", "process 7 is gone", "start the job again"}));
    EXPECT_TRUE(desks[i]->idle());
    for (u32 other = 0; other < 2; ++other) EXPECT_TRUE(desks[0]->channel().lost(other));
  }
}

TEST_F(DeskLosses, are_none_where_a_side_is_slow) {
  begin();
  for (auto const until = std::chrono::steady_clock::now() + 600ms;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(50us))
    desks[0]->work();
  for (u32 i = 0; i < 1'000'000 && !(copies[0]->done() && copies[1]->done()); ++i)
    for (auto const& desk : desks) desk->work();
  for (auto const& copy : copies) copy->wait();
  EXPECT_EQ(std::ranges::count(here[1], 'a'), 100'000);
  EXPECT_EQ(std::ranges::count(shelves[1].bytes, 'b'), 100'000);
}

}  // namespace
}  // namespace meshpost::test
