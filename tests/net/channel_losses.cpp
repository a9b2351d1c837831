// Losses of a channel: both ends find out, in time, and say why; and nobody is lost who is only
// slow.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "meshpost/base/error.hpp"
#include "net/channel.hpp"
#include "net/direct_out_of_band.hpp"
#include "net/lossy_line.hpp"

namespace meshpost::test {
namespace {

using namespace std::chrono_literals;
using net::Channel;

constexpr u32 their_kind = 2;
constexpr std::chrono::milliseconds short_timeout{200}, ample{20'000};

struct Talker final : Channel::Client {
  Talker(std::unique_ptr<LossyLine> engine, std::chrono::milliseconds timeout, u32 first)
      : line(*engine), channel(std::move(engine), 2, {&out_of_band, timeout}, first) {
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
    if (channel.send(1 - out_of_band.self, their_kind, {.header = header}) == Channel::Sent::no)
      return false;
    ++sent;
    return true;
  }
  void work() {
    bool const any = channel.poll();
    channel.tell(!any);
  }
  DirectOutOfBand out_of_band;
  LossyLine& line;
  u64 sent = 0, received = 0, refuses = ~u64{0};
  u32 losses = 0;
  std::string reason;
  Channel channel;
};

struct ChannelLosses : testing::Test {
  explicit ChannelLosses(std::chrono::milliseconds timeout = short_timeout, u32 first = 0) {
    auto one_end = std::make_unique<LossyLine>(random, 0),
         other_end = std::make_unique<LossyLine>(random, 1);
    one_end->other = other_end.get(), other_end->other = one_end.get();
    one = std::make_unique<Talker>(std::move(one_end), timeout, first);
    two = std::make_unique<Talker>(std::move(other_end), timeout, first);
    two->out_of_band.self = 1;
    one->out_of_band.other = &two->out_of_band, two->out_of_band.other = &one->out_of_band;
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
    EXPECT_NE(one->reason.find("it has ended this connection: "), std::string::npos);
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
  EXPECT_TRUE(comes_true([&] { return one->losses != 0 || (one->send() && one->sent >= 10); }));
  auto const begin = std::chrono::steady_clock::now();
  expect_both_lost("the network lost message ");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, short_timeout / 2);
  EXPECT_LT(two->received, 10u);
  EXPECT_NE(two->reason.find("0.2 s (MESHPOST_PEER_DEADLINE)"), std::string::npos) << two->reason;
}

// Nothing comes behind it by which the receiver could see that it is missing.
TEST_F(ChannelLosses, of_the_last_message_are_found_by_what_the_sender_says_of_it) {
  drop(*two, Event::What::message, 0);
  EXPECT_TRUE(comes_true([&] { return one->send(); }));
  expect_both_lost("the network lost message 0 of the sender");
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
  expect_both_lost("the network lost message 0 of the sender");
}

TEST_F(ChannelLosses, by_a_changed_bit_end_both_ends) {
  two->line.copies = [&](Event& event) {
    event.bytes.back() = static_cast<char>(event.bytes.back() ^ 1);
    return 1u;
  };
  EXPECT_TRUE(comes_true([&] { return one->send(); }));
  expect_both_lost("a message was changed on its way");
}

TEST_F(ChannelLosses, by_a_client_that_throws_half_way_end_both_ends) {
  two->refuses = 5;
  EXPECT_TRUE(comes_true([&] { return one->losses != 0 || (one->send() && one->sent == 9); }));
  expect_both_lost("out of paper");
  EXPECT_EQ(two->received, 5u);
}

TEST_F(ChannelLosses, that_the_engine_tells_end_the_other_end_too) {
  two->channel.lose(0, "the cable fell out");
  expect_both_lost("the cable fell out");
}

// The other way is gone too: this end finds out, and no more can be done.
TEST_F(ChannelLosses, are_an_error_here_also_where_the_other_end_can_not_be_told) {
  two->out_of_band.broken = true;
  two->channel.lose(0, "the cable fell out");
  EXPECT_EQ(two->losses, 1u);
  EXPECT_FALSE(comes_true([&] { return one->losses != 0; }, 50ms));
}

TEST_F(ChannelLosses, are_none_where_the_receiver_does_not_look_for_long) {
  for (auto const until = std::chrono::steady_clock::now() + 4 * short_timeout;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(100us)) {
    if (one->sent < 100) one->send();
    one->work();
  }
  EXPECT_EQ(one->losses, 0u);
  EXPECT_GT(one->out_of_band.told, 0u);
  EXPECT_TRUE(comes_true([&] { return two->received == 100; }));
  EXPECT_EQ(one->losses + two->losses, 0u);
}

// A sender that is busy says nothing. The message may lie in its engine, which it does not poll.
TEST_F(ChannelLosses, are_none_where_the_sender_does_not_look_for_long) {
  drop(*two, Event::What::message, 0);
  EXPECT_TRUE(comes_true([&] { return one->send(); }));
  EXPECT_TRUE(comes_true([&] { return one->out_of_band.told != 0; }));
  for (auto const until = std::chrono::steady_clock::now() + 4 * short_timeout;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(100us))
    two->work();
  EXPECT_EQ(two->losses, 0u);
  expect_both_lost("the network lost message 0 of the sender");
}

// It says so now and then, later than the receiver would have it.
TEST_F(ChannelLosses, are_found_where_the_sender_looks_seldom) {
  drop(*two, Event::What::message, 0);
  EXPECT_TRUE(comes_true([&] { return one->send(); }));
  auto last = std::chrono::steady_clock::now();
  for (auto const until = last + ample;
       std::chrono::steady_clock::now() < until && two->losses == 0;
       std::this_thread::sleep_for(100us)) {
    two->work();
    if (std::chrono::steady_clock::now() - last < 120ms) continue;
    one->work();
    last = std::chrono::steady_clock::now();
  }
  EXPECT_EQ(two->losses, 1u);
}

struct LessPatientChannels : ChannelLosses {
  LessPatientChannels() : ChannelLosses(2'000ms) {}
};
TEST_F(LessPatientChannels, say_nothing_out_of_band_where_all_has_come) {
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 50; }));
  EXPECT_TRUE(comes_true([&] { return two->received == 50; }));
  comes_true([] { return false; }, 1'200ms);  // more than a quarter
  EXPECT_EQ(one->out_of_band.told + two->out_of_band.told, 0u);
  u32 const told = one->channel.carried_out(1);
  EXPECT_GE(told, 1u);
  comes_true([] { return false; }, 600ms);
  EXPECT_EQ(one->channel.carried_out(1), told);  // news of news would never end
  EXPECT_EQ(two->channel.carried_out(0), 50u);
  EXPECT_EQ(one->losses + two->losses, 0u);
}

struct WrappingChannels : ChannelLosses {
  WrappingChannels() : ChannelLosses(short_timeout, ~u32{0} - 25) {}
};
TEST_F(WrappingChannels, go_on_where_numbers_wrap) {
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 100; }));
  EXPECT_TRUE(comes_true([&] { return two->send() && two->sent == 100; }));
  EXPECT_TRUE(comes_true([&] { return one->received == 100 && two->received == 100; }));
  comes_true([] { return false; }, 2 * short_timeout);
  EXPECT_EQ(one->losses + two->losses, 0u);
}
TEST_F(WrappingChannels, find_the_loss_of_the_message_before_the_wrap) {
  drop(*two, Event::What::message, 25);
  EXPECT_TRUE(comes_true([&] { return one->losses != 0 || (one->send() && one->sent == 100); }));
  expect_both_lost("the network lost message ");
  EXPECT_LT(two->received, 100u);
}
// News are messages, too. The receiver's client has sent nothing.
TEST_F(WrappingChannels, find_the_loss_of_news_before_the_next_message) {
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 50; }));
  drop(*one, Event::What::message, 0);
  EXPECT_TRUE(comes_true([&] { return two->received == 50; }));
  comes_true([] { return false; }, short_timeout);
  EXPECT_TRUE(comes_true([&] { return two->send() || two->losses != 0; }));
  EXPECT_TRUE(comes_true([&] { return one->losses != 0 && two->losses != 0; }));
}

struct PatientChannels : ChannelLosses {
  PatientChannels() : ChannelLosses(0ms) {}
};
TEST_F(PatientChannels, wait_for_ever_where_there_is_no_timeout) {
  drop(*two, Event::What::message, 3);
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent >= 10; }));
  EXPECT_FALSE(comes_true([&] { return one->losses + two->losses != 0; }, 2 * short_timeout));
  two->channel.lose(0, "the cable fell out");
  expect_both_lost("the cable fell out");
}

TEST_F(ChannelLosses, are_not_made_by_notices_that_say_nothing) {
  for (auto const& bytes : {std::string(), std::string("S"), std::string("S123"),
                            std::string("S12345"), std::string("X"), std::string("\0abc", 4)})
    two->out_of_band.come.push_back({0, bytes});
  two->out_of_band.come.push_back({77, "Lost"});
  EXPECT_TRUE(comes_true([&] { return one->send() && one->sent == 50; }));
  EXPECT_TRUE(comes_true([&] { return two->received == 50; }));
  EXPECT_EQ(one->losses + two->losses, 0u);
}

}  // namespace
}  // namespace meshpost::test
