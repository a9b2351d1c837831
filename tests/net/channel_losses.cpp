// Losses of a channel: both ends find out, in time, and say why; and nobody is lost who is only
// slow.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "meshpost/base/error.hpp"
#include "net/channel.hpp"
#include "net/letters.hpp"
#include "net/lossy_line.hpp"

namespace meshpost::test {
namespace {

using namespace std::chrono_literals;
using net::Channel;

constexpr u32 their_kind = 2;
constexpr std::chrono::milliseconds short_patience{200}, ample{20'000};

struct Talker final : Channel::Client {
  Talker(std::unique_ptr<LossyLine> engine, std::chrono::milliseconds patience)
      : line(*engine), channel(std::move(engine), 2, {&letters, patience}) {
    channel.serve(their_kind, *this);
  }
  void on_message(u32, Channel::Message const& message) override {
    u64 sequence = 0;
    std::memcpy(&sequence, message.header.data(), sizeof sequence);
    if (sequence == refuses) throw std::runtime_error("out of paper");
    EXPECT_EQ(sequence, received++);
  }
  void on_lost(u32, std::string const& why) override {
    ++losses;
    reason = why;
  }
  bool send() {
    std::string_view const header{reinterpret_cast<char const*>(&sent), sizeof sent};
    if (channel.send(1 - letters.self, their_kind, {.header = header}) == Channel::Sent::no)
      return false;
    ++sent;
    return true;
  }
  void work() {
    bool const any = channel.poll();
    channel.tell(!any);
  }
  Letters letters;
  LossyLine& line;
  u64 sent = 0, received = 0, refuses = ~u64{0};
  u32 losses = 0;
  std::string reason;
  Channel channel;
};

struct ChannelLosses : testing::Test {
  explicit ChannelLosses(std::chrono::milliseconds patience = short_patience) { make(patience); }
  void make(std::chrono::milliseconds patience) {
    auto first = std::make_unique<LossyLine>(random, 0),
         second = std::make_unique<LossyLine>(random, 1);
    first->other = second.get(), second->other = first.get();
    one = std::make_unique<Talker>(std::move(first), patience);
    two = std::make_unique<Talker>(std::move(second), patience);
    two->letters.self = 1;
    one->letters.other = &two->letters, two->letters.other = &one->letters;
  }
  template <class Holds>
  bool comes_true(Holds const& holds, std::chrono::milliseconds within = ample) {
    for (auto const until = std::chrono::steady_clock::now() + within;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(100us)) {
      if (holds()) return true;
      for (auto* const end : {one.get(), two.get()}) end->work();
    }
    return holds();
  }
  void drop(Talker& receiver, LossyLine::Event::What what, u32 which) {
    receiver.line.copies = [=, seen = u32{0}](LossyLine::Event& event) mutable {
      return event.what == what && seen++ == which ? 0u : 1u;
    };
  }
  void expect_both_lost(std::string const& why) {
    EXPECT_TRUE(comes_true([&] { return one->losses != 0 && two->losses != 0; }));
    for (auto* const end : {one.get(), two.get()}) {
      EXPECT_EQ(end->losses, 1u);
      EXPECT_NE(end->reason.find(why), std::string::npos) << end->reason;
      EXPECT_FALSE(end->send());
    }
    EXPECT_NE(one->reason.find("process 1 has ended the connection: "), std::string::npos);
  }

  u64 const seed = std::random_device{}();
  testing::ScopedTrace const trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  std::mt19937_64 random{seed};
  std::unique_ptr<Talker> one, two;
};
using Event = LossyLine::Event;

TEST_F(ChannelLosses,
       of_a_message_between_others_end_both_ends_and_nothing_behind_it_is_delivered) {
  drop(*two, Event::What::message, 3);
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent >= 10; }));
  auto const begin = std::chrono::steady_clock::now();
  expect_both_lost("the network lost message ");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, short_patience / 2);
  EXPECT_LT(two->received, 10u);
  EXPECT_NE(two->reason.find("0.2 s (MESHPOST_PEER_DEADLINE)"), std::string::npos) << two->reason;
}

// Nothing comes behind it by which the receiver could see that it is missing.
TEST_F(ChannelLosses, of_the_last_message_are_found_by_what_the_sender_says_of_it) {
  drop(*two, Event::What::message, 0);
  EXPECT_TRUE(comes_true([&] { return one->send(); }));
  expect_both_lost("the network lost message 0 of process 0");
  EXPECT_EQ(two->received, 0u);
}

TEST_F(ChannelLosses, of_what_tells_of_a_write_end_both_ends) {
  drop(*two, Event::What::data, 0);
  char place[8] = {};
  auto const source = std::make_shared<std::string>(8, 'x');
  EXPECT_TRUE(comes_true([&] {
    return one->channel.write(1, their_kind, *source, {reinterpret_cast<u64>(&place)}, 0, source);
  }));
  EXPECT_TRUE(comes_true([&] { return one->send(); }));
  expect_both_lost("the network lost message 0 of process 0");
}

// Numbers have 32 bits: the lost message is the last before they wrap, or the first behind.
TEST_F(ChannelLosses, of_messages_whose_numbers_wrap_are_found_too) {
  for (u32 const behind : {0u, 1u}) {
    make(short_patience);
    for (auto* const end : {one.get(), two.get()}) end->channel.begin_at(~u32{0} - 2);
    drop(*two, Event::What::message, 2 + behind);
    two->line.any_order = false;
    EXPECT_TRUE(comes_true([&] { return one->send() && one->sent >= 3 + behind; }));
    expect_both_lost("the network lost message " + std::to_string(behind - 1) + " of process 0");
    EXPECT_EQ(two->received, 2 + behind);
  }
}
TEST_F(ChannelLosses, are_none_and_nothing_is_said_where_numbers_wrap) {
  for (auto* const end : {one.get(), two.get()}) end->channel.begin_at(~u32{0} - 25);
  for (u32 burst = 1; burst <= 3; ++burst) {
    EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 20 * burst; }));
    EXPECT_TRUE(comes_true([&] { return two->received == 20 * burst; }));
    comes_true([] { return false; }, short_patience / 2);
  }
  EXPECT_EQ(one->letters.told + two->letters.told, 0u);
  EXPECT_EQ(one->losses + two->losses, 0u);
}

TEST_F(ChannelLosses, by_a_changed_bit_end_both_ends) {
  two->line.copies = [&](Event& event) {
    event.bytes.back() = static_cast<char>(event.bytes.back() ^ 1);
    return 1u;
  };
  EXPECT_TRUE(comes_true([&] { return one->send(); }));
  expect_both_lost("a message of process 0 was refused: it was changed on its way");
}

TEST_F(ChannelLosses, by_a_client_that_throws_half_way_end_both_ends) {
  two->refuses = 5;
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 9; }));
  expect_both_lost("a message of process 0 was refused: ");
  expect_both_lost("out of paper");
  EXPECT_EQ(two->received, 5u);
}

TEST_F(ChannelLosses, that_the_engine_tells_end_the_other_end_too) {
  two->channel.lose(0, "the cable fell out");
  expect_both_lost("the cable fell out");
}

// The other way is gone too: this end finds out, and no more can be done.
TEST_F(ChannelLosses, are_an_error_here_also_where_the_other_end_can_not_be_told) {
  two->letters.broken = true;
  two->channel.lose(0, "the cable fell out");
  EXPECT_EQ(two->losses, 1u);
  EXPECT_FALSE(comes_true([&] { return one->losses != 0; }, 50ms));
}

TEST_F(ChannelLosses, are_none_where_the_receiver_does_not_look_for_long) {
  for (auto const until = std::chrono::steady_clock::now() + 4 * short_patience;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(100us)) {
    if (one->sent < 100) one->send();
    one->work();
  }
  EXPECT_EQ(one->losses, 0u);
  EXPECT_GT(one->letters.told, 0u);
  EXPECT_TRUE(comes_true([&] { return two->received == 100; }));
  EXPECT_EQ(one->losses + two->losses, 0u);
}

// An engine may get on only in a round of its own thread. So what it was given stays there while
// that thread is busy. It is not missing: its sender says nothing of it meanwhile.
TEST_F(ChannelLosses, are_none_where_the_sender_is_busy_and_its_engine_does_not_get_on) {
  while (one->sent < 2) one->send();
  auto const held_up = two->line.arrived.front();
  two->line.arrived.erase(two->line.arrived.begin());
  for (auto const until = std::chrono::steady_clock::now() + 3 * short_patience;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(100us))
    two->work();
  EXPECT_EQ(two->losses, 0u) << two->reason;
  two->line.arrived.push_back(held_up);
  EXPECT_TRUE(comes_true([&] { return two->received == 2; }));
  EXPECT_EQ(one->losses + two->losses, 0u);
}

// The receiver tells by a message. The other way goes through process 0.
TEST_F(ChannelLosses, are_none_and_nothing_is_said_out_of_band_where_messages_come) {
  for (u32 burst = 1; burst <= 3; ++burst) {
    EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 20 * burst; }));
    EXPECT_TRUE(comes_true([&] { return two->received == 20 * burst; }));
    comes_true([] { return false; }, short_patience);
    EXPECT_EQ(one->letters.told + two->letters.told, 0u);
  }
  auto const sent = two->channel.traffic().sent;
  comes_true([] { return false; }, 2 * short_patience);
  EXPECT_EQ(two->channel.traffic().sent, sent);  // nobody answers what only tells
  EXPECT_EQ(one->losses + two->losses, 0u);
}

TEST_F(ChannelLosses, of_a_message_that_only_tells_end_both_ends_when_a_message_waits_behind_it) {
  drop(*one, Event::What::message, 0);
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 300; }));
  EXPECT_TRUE(comes_true([&] { return two->channel.traffic().sent != 0; }));
  comes_true([] { return false; }, 2 * short_patience);  // what was heard stands in later ones too
  EXPECT_EQ(one->losses + two->losses, 0u);
  EXPECT_TRUE(comes_true([&] { return two->send(); }));
  EXPECT_TRUE(comes_true([&] { return one->losses != 0 && two->losses != 0; }));
  EXPECT_NE(one->reason.find("the network lost message 0 of process 1"), std::string::npos)
      << one->reason;
  EXPECT_NE(two->reason.find("process 0 has ended the connection: the network lost message 0 of "
                             "process 1"),
            std::string::npos)
      << two->reason;
}

// It was away for longer than its patience, and looks once in between.
struct HastyChannels : ChannelLosses {
  HastyChannels() : ChannelLosses(40ms) {}
};
TEST_F(HastyChannels, do_not_count_time_in_which_they_did_not_look_themselves) {
  while (one->sent < 2) one->send();
  auto const held_up = two->line.arrived.front();
  two->line.arrived.erase(two->line.arrived.begin());
  for (int look = 0; look < 3; ++look) {
    two->letters.come.push_back({0, std::string("S\2\0\0\0", 5)});
    two->work();
    std::this_thread::sleep_for(60ms);
  }
  EXPECT_EQ(two->losses, 0u) << two->reason;
  two->line.arrived.push_back(held_up);
  EXPECT_TRUE(comes_true([&] { return two->received == 2; }));
  EXPECT_EQ(one->losses + two->losses, 0u);
}

struct PatientChannels : ChannelLosses {
  PatientChannels() : ChannelLosses(0ms) {}
};
TEST_F(PatientChannels, wait_for_ever_where_there_is_no_patience) {
  drop(*two, Event::What::message, 3);
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent >= 10; }));
  EXPECT_FALSE(comes_true([&] { return one->losses + two->losses != 0; }, 2 * short_patience));
  two->channel.lose(0, "the cable fell out");
  expect_both_lost("the cable fell out");
}

// A round in the engine may be long.
TEST_F(ChannelLosses, that_others_have_told_are_known_before_the_engine_is_entered) {
  while (two->line.arrived.empty()) one->send();
  u32 losses_inside = 0;
  two->line.copies = [&](Event&) {
    losses_inside = two->losses;
    return 0u;
  };
  two->letters.come.push_back({0, "Lthe cable fell out"});
  two->channel.poll();
  EXPECT_EQ(losses_inside, 1u);
}

TEST_F(ChannelLosses, are_not_made_by_notices_that_say_nothing) {
  for (auto const& bytes : {std::string(), std::string("S"), std::string("S123"),
                            std::string("S12345"), std::string("X"), std::string("\0abc", 4)})
    two->letters.come.push_back({0, bytes});
  two->letters.come.push_back({77, "Lost"});
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 50; }));
  EXPECT_TRUE(comes_true([&] { return two->received == 50; }));
  EXPECT_EQ(one->losses + two->losses, 0u);
}

}  // namespace
}  // namespace meshpost::test
