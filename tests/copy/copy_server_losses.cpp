// Copies on both sides end if one of their messages is lost, or one side throws.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

#include "copy/job/copy_server.hpp"
#include "net/direct_out_of_band.hpp"
#include "net/lossy_line.hpp"
#include "support/errors.hpp"

namespace meshpost::test {
namespace {

using copying::CopyServer;
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

struct CopyServerLosses : testing::Test {
  CopyServerLosses() {
    std::unique_ptr<DirectOutOfBand> ways[2];
    std::unique_ptr<LossyLine> ends[2];
    for (u32 i = 0; i < 2; ++i) {
      ways[i] = std::make_unique<DirectOutOfBand>();
      ends[i] = std::make_unique<LossyLine>(random, i);
      ways[i]->self = i;
      lines[i] = ends[i].get();
    }
    for (u32 i = 0; i < 2; ++i)
      ways[i]->other = ways[1 - i].get(), ends[i]->other = ends[1 - i].get();
    auto const name = [](u32 process) { return "process " + std::to_string(process); };
    for (u32 i = 0; i < 2; ++i)
      servers[i] = std::make_unique<CopyServer>(std::move(ends[i]), shelves[i], 2, name,
                                                std::move(ways[i]), 200ms);
  }
  // A large copy at each side.
  void begin() {
    copies[0] = servers[0]->ask({.type = Message::Type::put,
                                 .process = 1,
                                 .exposure = 5,
                                 .here = here[0].data(),
                                 .size = here[0].size()});
    copies[1] = servers[1]->ask({.type = Message::Type::get,
                                 .process = 0,
                                 .exposure = 5,
                                 .here = here[1].data(),
                                 .size = here[1].size()});
  }
  void expect_both_end(std::string_view why) {
    for (auto const until = std::chrono::steady_clock::now() + 20s;
         std::chrono::steady_clock::now() < until && !(copies[0]->done() && copies[1]->done());
         std::this_thread::sleep_for(50us))
      for (auto const& server : servers) server->work();
    for (u32 i = 0; i < 2; ++i) {
      ASSERT_TRUE(copies[i]->done());
      EXPECT_TRUE(says(error_of([&] { copies[i]->wait(); }), Kind::peer_lost,
                       {"copy", "process " + std::to_string(1 - i), why, "start the job again"}));
      EXPECT_TRUE(servers[i]->idle());
    }
    begin();  // later ones end at once
    for (auto const& server : servers) server->work();
    for (u32 i = 0; i < 2; ++i) EXPECT_TRUE(copies[i]->done());
  }
  std::mt19937_64 random{std::random_device{}()};
  Shelf shelves[2];
  std::vector<char> here[2] = {std::vector<char>(100'000, 'b'), std::vector<char>(100'000, 'b')};
  LossyLine* lines[2];
  std::unique_ptr<CopyServer> servers[2];
  copying::StatePtr copies[2];
};

TEST_F(CopyServerLosses, of_a_message_end_the_copies_of_both_sides_whichever_lost_it) {
  begin();
  u32 seen = 0;
  lines[random() % 2]->copies = [&](LossyLine::Event&) { return ++seen == 5 ? 0u : 1u; };
  expect_both_end("the network lost message ");
}

TEST_F(CopyServerLosses, by_a_changed_message_end_the_copies_of_both_sides) {
  begin();
  u32 seen = 0;
  lines[random() % 2]->copies = [&](LossyLine::Event& event) {
    if (++seen == 5) event.bytes.back() = static_cast<char>(event.bytes.back() ^ 4);
    return 1u;
  };
  expect_both_end("a message was changed on its way");
}

TEST_F(CopyServerLosses, by_a_side_that_throws_half_way_end_the_copies_of_both_sides) {
  begin();
  for (u32 i = 0; i < 20; ++i)
    for (auto const& server : servers) server->work();
  shelves[random() % 2].fails = true;
  expect_both_end("the shelf broke");
}

// Such as by the loss of a third process, over an engine that does not outlive it.
TEST_F(CopyServerLosses, of_all_copies_of_one_side_end_the_other_side_with_the_same_reason) {
  begin();
  for (u32 i = 0; i < 20; ++i)
    for (auto const& server : servers) server->work();
  servers[0]->fail_all({Kind::peer_lost, "copy", "process 2 is gone: it was killed", "look"}, 2);
  EXPECT_TRUE(says(error_of([&] { copies[0]->wait(); }), Kind::peer_lost, {"process 2 is gone"}));
  for (u32 i = 0; i < 1'000'000 && !copies[1]->done(); ++i) servers[1]->work();
  EXPECT_TRUE(says(error_of([&] { copies[1]->wait(); }), Kind::peer_lost,
                   {"from process 0 any more", "process 2 is gone: it was killed"}));
}

TEST_F(CopyServerLosses, are_not_told_where_both_have_agreed_to_end) {
  servers[0]->close({Kind::misuse, "copy", "its JobMemory is gone", ""});
  for (u32 i = 0; i < 100; ++i) servers[1]->work();
  copies[1] = servers[1]->ask({.type = Message::Type::get,
                               .process = 0,
                               .exposure = 5,
                               .here = here[1].data(),
                               .size = here[1].size()});
  for (u32 i = 0; i < 100; ++i) servers[1]->work();
  EXPECT_FALSE(copies[1]->done());
  servers[0]->fail_all({Kind::misuse, "copy", "its JobMemory is gone", ""}, 2);
  for (u32 i = 0; i < 1'000'000 && !copies[1]->done(); ++i) servers[1]->work();
  EXPECT_TRUE(copies[1]->done());
}

TEST_F(CopyServerLosses, are_none_where_a_side_is_slow) {
  begin();
  for (auto const until = std::chrono::steady_clock::now() + 600ms;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(50us))
    servers[0]->work();
  for (u32 i = 0; i < 1'000'000 && !(copies[0]->done() && copies[1]->done()); ++i)
    for (auto const& server : servers) server->work();
  for (auto const& copy : copies) copy->wait();
  EXPECT_EQ(std::ranges::count(here[1], 'a'), 100'000);
  EXPECT_EQ(std::ranges::count(shelves[1].bytes, 'b'), 100'000);
}

}  // namespace
}  // namespace meshpost::test
