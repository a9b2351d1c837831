#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "net/channel.hpp"
#include "net/lossy_line.hpp"

// Two ends of a channel in one process, over an engine that keeps no order.

namespace meshpost::test {

constexpr u32 ends_kind = 3;

inline std::string number(u64 i) { return {reinterpret_cast<char const*>(&i), sizeof i}; }

/// An end of a channel: sends numbered messages, with bytes behind or written apart, and looks at
/// what comes.
struct End final : net::Channel::Client {
  End(std::unique_ptr<LossyLine> engine, u64 seed)
      : line(*engine), random(seed), channel(std::move(engine), 2) {
    channel.serve(ends_kind, *this);
  }
  void on_message(u32 peer, net::Channel::Message const& message) override {
    EXPECT_EQ(peer, 1 - self);
    if (refuses) throw Error(Kind::bad_argument, "test", "not to its taste", "");
    u64 sequence = 0, size = 0;
    ASSERT_EQ(message.header.size(), 2 * sizeof(u64));
    std::memcpy(&sequence, message.header.data(), sizeof sequence);
    std::memcpy(&size, message.header.data() + sizeof size, sizeof size);
    EXPECT_EQ(sequence, received++);
    std::string_view bytes = message.bytes;
    if (message.written) bytes = {window.data() + place_of(sequence), size};
    EXPECT_EQ(bytes.size(), size);
    for (u64 i = 0; i < bytes.size(); ++i)
      if (bytes[i] != static_cast<char>(sequence + i)) {
        ++wrong;
        break;
      }
  }
  void on_heard(u32, u32 before) override { heard = before - first; }
  void on_read(std::shared_ptr<void> const& source) override {
    EXPECT_TRUE(source);
    ++read;
  }
  void on_lost(u32, std::string const& why) override {
    ++losses;
    lost_by = why;
  }

  // Of two writes to one place the earlier was heard of before the later begins.
  static constexpr u64 places = 2048, largest = 1024;
  static u64 place_of(u64 sequence) { return sequence % places * largest; }

  bool send() {
    if (!pending) {
      u64 const sequence = sent;
      u64 const size = random() % 3 == 0 ? random() % largest : random() % 40;
      auto bytes = std::make_shared<std::string>(size, '\0');
      for (u64 i = 0; i < size; ++i) (*bytes)[i] = static_cast<char>(sequence + i);
      bool const writes = may_write && random() % 4 == 0 && sequence - heard < places;
      other->window.resize(places * largest);
      pending = {bytes, number(sequence) + number(size), writes, false};
    }
    auto& next = *pending;
    if (next.writes && !next.begun) {
      if (!channel.write(1 - self, ends_kind, *next.bytes,
                         {reinterpret_cast<u64>(other->window.data())}, place_of(sent), next.bytes))
        return false;
      next.begun = true;
      ++to_read;
    }
    auto const now =
        channel.send(1 - self, ends_kind,
                     {.header = next.header,
                      .bytes = next.writes ? std::string_view() : std::string_view(*next.bytes),
                      .source = next.bytes,
                      .answer = next.writes});
    if (now == net::Channel::Sent::no) return false;
    to_read += now == net::Channel::Sent::reading;
    pending.reset();
    ++sent;
    return true;
  }
  void work() {
    bool any = channel.poll();
    any |= channel.tell(!any);
  }

  struct Pending {
    std::shared_ptr<std::string> bytes;
    std::string header;
    bool writes, begun;
  };
  u32 self = 0;
  End* other = nullptr;
  LossyLine& line;
  std::mt19937_64 random;
  std::string window;
  std::optional<Pending> pending;
  u64 sent = 0, received = 0, wrong = 0, to_read = 0, read = 0;
  u32 heard = 0, losses = 0;
  u32 first = 0;  // sequence number
  bool refuses = false, may_write = true;
  std::string lost_by;
  net::Channel channel;
};

struct Two {
  explicit Two(u64 seed, bool keeps = false) : random(seed) {
    auto one = std::make_unique<LossyLine>(random, 0, keeps),
         two = std::make_unique<LossyLine>(random, 1, keeps);
    one->other = two.get(), two->other = one.get();
    ends[0] = std::make_unique<End>(std::move(one), random());
    ends[1] = std::make_unique<End>(std::move(two), random());
    ends[1]->self = 1;
    ends[0]->other = ends[1].get(), ends[1]->other = ends[0].get();
  }
  // Until nothing moves any more.
  void settle() {
    for (u32 idle = 0; idle < 200;) {
      bool any = !ends[0]->line.arrived.empty() || !ends[1]->line.arrived.empty();
      for (auto& end : ends) end->work();
      idle = any ? 0 : idle + 1;
    }
  }
  void talk(u64 messages, u32 of = 2) {
    for (u64 tries = 0; tries < 100 * messages; ++tries) {
      auto& end = *ends[random() % of];
      if (end.sent < messages && !end.channel.lost(1 - end.self)) end.send();
      ends[random() % 2]->work();
      bool over = true;
      for (u32 i = 0; i < of; ++i)
        over &= ends[i]->sent >= messages || ends[i]->channel.lost(1 - ends[i]->self);
      if (over) return;
    }
    ADD_FAILURE() << "nothing gets on after " << ends[0]->sent << " and " << ends[1]->sent;
  }
  std::mt19937_64 random;
  std::unique_ptr<End> ends[2];
};

struct Seeded {
  u64 const seed = std::random_device{}();
};
struct Channels : testing::Test, Seeded, Two {
  explicit Channels(bool keeps = false) : Two(seed, keeps) {}
  testing::ScopedTrace const trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

}  // namespace meshpost::test
