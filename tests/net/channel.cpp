// Messages whole and in order, over an engine that keeps no order, with everything that can happen
// to them on their way; no process and no network.
#include "net/channel.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "meshpost/base/error.hpp"
#include "net/ends.hpp"
#include "support/sanitized.hpp"

namespace meshpost::test {
namespace {

using net::Channel;
using net::FrameHeader;
using net::most_client_header;

TEST_F(Channels, bring_all_in_order_both_ways) {
  talk(20'000);
  settle();
  for (auto const& end : ends) {
    EXPECT_EQ(end->received, 20'000u);
    EXPECT_EQ(end->wrong, 0u);
    EXPECT_EQ(end->losses, 0u);
    EXPECT_EQ(end->read, end->to_read);
    EXPECT_TRUE(end->channel.reads_nothing());
    auto const traffic = end->channel.traffic(1 - end->self);
    EXPECT_EQ(traffic.sent, end->other->channel.traffic().received);
    EXPECT_GE(traffic.sent, 20'000u);
    EXPECT_EQ(end->channel.writes_begun(1 - end->self),
              end->other->channel.writes_landed(end->self));
    EXPECT_GT(end->channel.writes_begun(1 - end->self), 20u);
  }
}

struct KeptChannels : Channels {
  KeptChannels() : Channels(true) {}
};
TEST_F(KeptChannels, of_an_engine_that_keeps_bytes_bring_all_too) {
  talk(3000);
  settle();
  for (auto const& end : ends) EXPECT_EQ(end->received, 3000u);
  for (auto const& end : ends) EXPECT_EQ(end->wrong, 0u);
}

TEST_F(Channels, hold_a_sender_up_whose_receiver_does_not_poll_and_keep_no_more_than_its_credit) {
  auto& sender = *ends[0];
  for (u32 tries = 0; tries < 100'000; ++tries) {
    sender.send();
    sender.work();
  }
  EXPECT_EQ(sender.sent, u64{Channel::most_unheard});
  EXPECT_LE(ends[1]->line.arrived.size(), 2 * std::size_t{Channel::most_unheard});
  talk(10'000, 1);
  settle();
  EXPECT_EQ(ends[1]->received, 10'000u);
}

// Both are full, and neither polled meanwhile.
TEST_F(Channels, get_on_when_both_directions_are_full) {
  for (auto& end : ends) end->may_write = false;
  for (u32 tries = 0; tries < 100'000; ++tries)
    for (auto& end : ends) end->send();
  for (auto& end : ends) EXPECT_EQ(end->sent, u64{Channel::most_unheard});
  talk(9000);
  settle();
  for (auto const& end : ends) EXPECT_EQ(end->received, 9000u);
}

TEST_F(Channels, wait_for_a_message_that_was_dropped_and_deliver_none_behind_it) {
  u32 seen = 0;
  ends[1]->line.copies = [&](LossyLine::Event& event) {
    return event.what == LossyLine::Event::What::message && ++seen == 50 ? 0u : 1u;
  };
  for (u32 tries = 0; tries < 2000; ++tries) {
    if (ends[0]->sent < 300) ends[0]->send();
    for (auto& end : ends) end->work();
  }
  settle();
  auto const moved = ends[1]->channel.moved();
  EXPECT_LT(ends[1]->received, 300u);
  EXPECT_EQ(ends[1]->losses, 0u);
  settle();
  EXPECT_EQ(ends[1]->channel.moved(), moved);  // whoever waits sees that
}

TEST_F(Channels, lose_a_peer_whose_message_comes_twice) {
  for (auto const what : {LossyLine::Event::What::message, LossyLine::Event::What::data}) {
    Two again(random());
    u32 seen = 0;
    again.ends[1]->line.copies = [&](LossyLine::Event& event) {
      return event.what == what && ++seen == 20 ? 2u : 1u;
    };
    for (u32 tries = 0; tries < 20'000 && again.ends[1]->losses == 0; ++tries) {
      again.ends[0]->send();
      for (auto& end : again.ends) end->work();
    }
    EXPECT_EQ(again.ends[1]->losses, 1u);
    EXPECT_NE(again.ends[1]->lost_by.find("twice"), std::string::npos) << again.ends[1]->lost_by;
    EXPECT_EQ(again.ends[1]->wrong, 0u);
  }
}

TEST_F(Channels, lose_a_peer_whose_message_has_any_bit_changed) {
  for (u32 round = 0; round < 300; ++round) {
    Two again(random());
    u32 const at = static_cast<u32>(random() % 30);
    u32 seen = 0;
    again.ends[1]->line.copies = [&](LossyLine::Event& event) {
      if (event.what == LossyLine::Event::What::message && seen++ == at) {
        u64 const bit = random() % (8 * event.bytes.size());
        event.bytes[bit / 8] = static_cast<char>(event.bytes[bit / 8] ^ 1 << bit % 8);
      }
      return 1u;
    };
    for (u32 tries = 0; tries < 5000 && again.ends[1]->losses == 0; ++tries) {
      again.ends[0]->send();
      for (auto& end : again.ends) end->work();
    }
    ASSERT_EQ(again.ends[1]->losses, 1u);
    ASSERT_NE(again.ends[1]->lost_by.find("changed on its way"), std::string::npos);
    ASSERT_EQ(again.ends[1]->wrong, 0u);
    ASSERT_EQ(again.ends[1]->channel.send(0, ends_kind, {.header = "x"}), Channel::Sent::no);
  }
}

// What comes is garbage, pieces of right messages, or right messages with lies in their headers,
// and a check sum that fits. Nothing is read beyond its end, and what is told to the client is in
// order.
// MESHPOST_TEST_FRAMES: how many.
TEST_F(Channels, survive_frames_of_another_mind) {
  char const* const asked = std::getenv("MESHPOST_TEST_FRAMES");
  u64 const frames = asked ? std::strtoull(asked, nullptr, 10) : sanitized ? 5'000 : 50'000;
  std::vector<std::string> right;
  {
    Two source(random());
    source.ends[1]->line.copies = [&](LossyLine::Event& event) {
      if (event.what == LossyLine::Event::What::message) right.push_back(event.bytes);
      return 1u;
    };
    source.talk(500, 1);
    source.settle();
  }
  u64 losses = 0, told = 0;
  for (u64 frame = 0; frame < frames;) {
    Two again(random());
    auto& end = *again.ends[0];
    struct Count final : Channel::Client {
      void on_message(u32, Channel::Message const& message) override {
        sum += message.header.size() + message.bytes.size();
        for (char const c : message.header) sum += static_cast<u64>(c);
        for (char const c : message.bytes) sum += static_cast<u64>(c);
        ++told;
      }
      void on_lost(u32, std::string const&) override {}
      u64 sum = 0, told = 0;
    } count;
    end.channel.serve(ends_kind, count);
    for (u32 i = 0; i < 50 && !end.channel.lost(1); ++i, ++frame) {
      std::string bytes = right[random() % right.size()];
      u64 const what = random() % 5;
      if (what == 0) {
        bytes.resize(random() % 200);
        for (char& c : bytes) c = static_cast<char>(random());
      } else if (what == 1) {
        bytes.resize(random() % (bytes.size() + 1));
      } else if (what == 2 && bytes.size() >= sizeof(FrameHeader)) {
        FrameHeader header;
        std::memcpy(&header, bytes.data(), sizeof header);
        u32* const fields[] = {&header.kind,  &header.sequence,     &header.heard,
                               &header.flags, &header.header_bytes, &header.body_bytes};
        for (u64 k = 0; k < 1 + random() % 2; ++k)
          *fields[random() % 6] = static_cast<u32>(random() % 3 == 0 ? random() : random() % 9);
        if (header.header_bytes <= most_client_header &&
            header.header_bytes <= bytes.size() - sizeof header)
          header.check =
              check_of(header, std::string_view(bytes).substr(sizeof header, header.header_bytes),
                       std::string_view(bytes).substr(sizeof header + header.header_bytes));
        std::memcpy(bytes.data(), &header, sizeof header);
      } else if (what == 3) {
        // The next in turn, as it should be.
        FrameHeader header;
        std::memcpy(&header, bytes.data(), sizeof header);
        header.sequence = end.channel.carried_out(1);
        header.flags &= ~FrameHeader::written;
        header.heard = 0;
        header.check =
            check_of(header, std::string_view(bytes).substr(sizeof header, header.header_bytes),
                     std::string_view(bytes).substr(sizeof header + header.header_bytes));
        std::memcpy(bytes.data(), &header, sizeof header);
      }
      end.line.arrived.push_back({LossyLine::Event::What::message, bytes});
      while (!end.line.arrived.empty()) end.channel.poll();
    }
    losses += end.channel.lost(1);
    told += count.told;
  }
  EXPECT_GT(losses, frames / 1000);
  EXPECT_GT(told, frames / 1000);
}

TEST_F(Channels, lose_a_peer_whose_message_its_client_refuses_and_tell_all_clients) {
  struct Other final : Channel::Client {
    void on_message(u32, Channel::Message const&) override { FAIL(); }
    void on_lost(u32 peer, std::string const& why) override {
      EXPECT_EQ(peer, 0u);
      told = why;
    }
    std::string told;
  } other;
  ends[1]->channel.serve(ends_kind + 1, other);
  ends[1]->refuses = true;
  while (!ends[0]->send()) ends[0]->work();
  settle();
  EXPECT_EQ(ends[1]->lost_by, "a message of process 0 was refused: not to its taste");
  EXPECT_EQ(other.told, ends[1]->lost_by);
  ends[1]->channel.lose(0, "again");
  EXPECT_EQ(ends[1]->losses, 1u);
}

TEST_F(Channels, refuse_a_kind_that_nobody_serves) {
  while (ends[0]->channel.send(1, ends_kind + 5, {.header = "hello"}) == Channel::Sent::no)
    ends[0]->work();
  settle();
  EXPECT_NE(ends[1]->lost_by.find("kind 8"), std::string::npos) << ends[1]->lost_by;
}

TEST_F(Channels, refuse_a_header_that_is_too_long) {
  std::string const header(most_client_header + 1, 'x');
  EXPECT_THROW(ends[0]->channel.send(1, ends_kind, {.header = header}), Error);
}

// A source stays until the engine has read it, also where the channel ends before.
TEST_F(Channels, keep_sources_until_they_were_read) {
  auto const source = std::make_shared<std::string>(1000, 'x');
  std::weak_ptr<std::string> const kept = source;
  while (
      ends[0]->channel.send(
          1, ends_kind, {.header = number(0) + number(1000), .bytes = *source, .source = source}) !=
      Channel::Sent::reading)
    continue;
  EXPECT_EQ(source.use_count(), 2);
  EXPECT_FALSE(ends[0]->channel.reads_nothing());
  ends[0]->channel.poll();
  EXPECT_EQ(source.use_count(), 1);
  EXPECT_EQ(ends[0]->read, 1u);
}

}  // namespace
}  // namespace meshpost::test
