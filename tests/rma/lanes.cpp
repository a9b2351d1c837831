// Messages of all sizes on lanes, also more than a lane holds. By any way, they arrive whole and in
// the order in which they were sent. tests/rma/cpu_only/lanes*.cpp test the protocol itself.
#include <cstdlib>
#include <random>

#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

constexpr u32 pitch = 2048, tags = 4;  // bytes from a message's place in the inbox to the next

// Messages of a rank to another; both compute them.
struct Messages {
  u64 seed;
  u32 count;
  MESHPOST_FN u64 number(u32 from, u32 to, u32 i) const { return mixed(seed, from, to, i); }
  MESHPOST_FN u32 size(u32 from, u32 to, u32 i) const {
    u64 const x = number(from, to, i);
    switch (x % 8) {
      case 0: return 0;
      case 1: return static_cast<u32>(x / 8 % 2000);
      case 2: return static_cast<u32>(x / 8 % 250 * 4);
      default: return static_cast<u32>(x / 8 % 16 * 4);  // most are short words
    }
  }
  MESHPOST_FN u32 tag(u32 from, u32 to, u32 i) const {
    return static_cast<u32>(number(from, to, i) >> 40) % tags;
  }
  MESHPOST_FN char byte(u32 from, u32 to, u32 i, u32 b) const {
    return static_cast<char>(number(from, to, i) >> (b % 7 * 8)) ^ static_cast<char>(b);
  }
};

// All ranks send `ahead` messages to all others before any rank polls.
struct Exchange {
  Window<char> inbox;  // [sender][message][place], then the sent bytes
  Messages messages;
  u32 ahead;
  test::Findings findings;

  MESHPOST_FN u32 tag_of(u32 from, u32 to, u32 i) const {
    return from * tags + messages.tag(from, to, i);
  }
  MESHPOST_FN u64 at(u32 from, u32 i) const { return (u64{from} * messages.count + i) * pitch; }

  MESHPOST_FN void send(Rank& self, u32 to, u32 i) const {
    u32 const me = self.id(), size = messages.size(me, to, i);
    // Each message has its own source, with any alignment.
    auto const out =
        inbox.local(self).subspan(at(self.size(), 0) + i % 8 * pitch + i % 5 % 4, size);
    self.flush(inbox);
    self.each(size, [&](u64 b) { out[b] = messages.byte(me, to, i, static_cast<u32>(b)); });
    self.put_notify(inbox.at(RankId{to}, at(me, i) + i % 3 * 4), out, Tag{tag_of(me, to, i)});
  }
  MESHPOST_FN void check(Rank& self, u32 from, u32 i) const {
    u32 const me = self.id(), size = messages.size(from, me, i);
    auto const in = inbox.local(self).subspan(at(from, i), pitch);
    self.wait(inbox, Tag{tag_of(from, me, i)}, 1, RankId{from});
    self.each(pitch - 8, [&](u64 b) {
      u64 const first = i % 3 * 4;
      bool const inside = b >= first && b < first + size;
      char const right =
          inside ? messages.byte(from, me, i, static_cast<u32>(b - first)) : char{0x55};
      findings.add(self, in[b] != right);
    });
    // No part of a later message was counted instead of this one.
    if (i + 1 == messages.count)
      for (u32 tag = 0; tag < tags; ++tag)
        findings.add(self, self.test(inbox, Tag{from * tags + tag}));
  }
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id();
    auto const mine = inbox.local(self);
    self.each(at(n, 0), [&](u64 i) { mine[i] = 0x55; });
    self.barrier();
    for (u32 step = 1; step < n; ++step)
      for (u32 i = 0; i < ahead; ++i) send(self, (me + step) % n, i);
    self.barrier();
    for (u32 i = 0; i < messages.count; ++i)
      for (u32 step = 1; step < n; ++step) {
        if (ahead + i < messages.count) send(self, (me + step) % n, ahead + i);
        check(self, (me + n - step) % n, i);
      }
  }
};

class LaneMessages : public testing::TestWithParam<u32> {};

TEST_P(LaneMessages, of_all_sizes_come_whole_and_in_order) {
  char const* const given = std::getenv("MESHPOST_TEST_SEED");
  u64 const seed = given ? std::stoull(given) : std::random_device{}();
  SCOPED_TRACE("MESHPOST_TEST_SEED=" + std::to_string(seed));
  auto options = test::options(GetParam(), test::devices(test::Spread::several_devices));
  options.lanes = 2;  // not enough for all
  World world(options);
  u32 const n = world.size(), count = (test::sanitized ? 500 : 3000) / (n * n) + 40;
  for (u32 const ahead : {0u, 3u, count}) {
    auto const inbox =
        world.window<char>(u64{n} * count * pitch + 8 * pitch, Tags{n * tags}, "inbox");
    auto const findings = test::make_findings(world);
    for (u32 round = 0; round < 2; ++round)
      world.run(Exchange{inbox, {mixed(seed, round, ahead), count}, ahead, findings});
    EXPECT_EQ(test::total(world, findings), 0);
    world.free(findings.words);
    world.free(inbox);
  }
}

// A long put, a message to another rank, then the notification of the put. The target has read the
// same bytes a round before. Only that notification tells it to read again.
struct Between {
  static constexpr u32 longs = 1024;
  Window<u32> inbox;  // words put by the previous rank, then words to send
  u32 rounds;
  test::Findings findings;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id();
    RankId const next{(me + 1) % n}, other{(me + 2) % n}, last{(me + n - 1) % n};
    auto const mine = inbox.local(self);
    auto const out = mine.subspan(longs, longs);
    for (u32 round = 1; round <= rounds; ++round) {
      self.flush(inbox);
      self.each(longs, [&](u64 i) { out[i] = static_cast<u32>(test::mixed(me, round, i)); });
      self.put(inbox.at(next), out);
      if (round % 3 == 0) self.publish();
      else self.notify(inbox, other, Tag{1});
      self.notify(inbox, next, Tag{0});
      self.wait(inbox, Tag{0}, 1, last);
      self.each(longs, [&](u64 i) {
        findings.add(self, mine[i] != static_cast<u32>(test::mixed(last.value, round, i)));
      });
      if (round % 3 != 0) self.wait(inbox, Tag{1});
      self.notify(inbox, last, Tag{2});  // has read it
      self.wait(inbox, Tag{2}, 1, next);
    }
  }
};

TEST_P(LaneMessages, bring_what_went_direct_whoever_was_sent_one_between) {
  auto options = test::options(GetParam(), test::devices(test::Spread::several_devices));
  options.lanes = 4;
  World world(options);
  auto const findings = test::make_findings(world);
  world.run(Between{world.window<u32>(2 * Between::longs, Tags{3}, "inbox"), 300, findings});
  EXPECT_EQ(test::total(world, findings), 0);
}

// Series of equal short messages, which a receiver that awaits several takes at once. Other
// messages are between them: of another length, too long for lanes, without bytes. All bytes of
// consumed messages must be there, and messages are consumed in their order.
struct Rows {
  static constexpr u32 most = 300;  // words of a message
  Window<u32> inbox;                // [sender][message], of `most` words, then the sent words
  u64 seed;
  u32 count, rounds;
  test::Findings findings;

  MESHPOST_FN u32 words(u32 from, u32 to, u32 i) const {
    u64 const x = mixed(seed, from, to, i / 23);  // number of equal messages in a row
    return static_cast<u32>(mixed(seed, from, i) % 41 == 0 ? most - x % 50 : x % 5);
  }
  MESHPOST_FN u32 word(u32 round, u32 from, u32 to, u32 i, u32 k) const {
    return static_cast<u32>(mixed(seed + round, from * 1000 + to, i, k));
  }

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id();
    auto const mine = inbox.local(self);
    auto const out = mine.subspan(u64{n} * count * most);
    for (u32 round = 0; round < rounds; ++round) {
      for (u32 step = 1; step < n; ++step) {
        u32 const to = (me + step) % n;
        for (u32 i = 0; i < count; ++i) {
          u32 const size = words(me, to, i);
          self.flush(inbox);
          self.each(size, [&](u64 k) { out[k] = word(round, me, to, i, static_cast<u32>(k)); });
          self.put_notify(inbox.at(RankId{to}, (u64{me} * count + i) * most), out.subspan(0, size),
                          Tag{me});
        }
      }
      for (u32 step = 1; step < n; ++step) {
        u32 const from = (me + n - step) % n;
        for (u32 i = 0; i < count;) {
          u32 const rest = count - i, few = static_cast<u32>(1 + mixed(seed, me, round, i) % 40);
          u32 const end = i + (few < rest ? few : rest);
          self.wait(inbox, Tag{from}, end - i, RankId{from});
          for (; i < end; ++i)
            self.each(words(from, me, i), [&](u64 k) {
              findings.add(self, mine[(u64{from} * count + i) * most + k] !=
                                     word(round, from, me, i, static_cast<u32>(k)));
            });
        }
      }
      self.barrier();
    }
  }
};

TEST_P(LaneMessages, in_rows_come_whole_and_in_order) {
  char const* const given = std::getenv("MESHPOST_TEST_SEED");
  u64 const seed = given ? std::stoull(given) : std::random_device{}();
  SCOPED_TRACE("MESHPOST_TEST_SEED=" + std::to_string(seed));
  auto options = test::options(GetParam(), test::devices(test::Spread::several_devices));
  options.lanes = 8;
  World world(options);
  u32 const n = world.size(), count = 2000 / n + 20;
  auto const findings = test::make_findings(world);
  world.run(Rows{world.window<u32>((u64{n} * count + 1) * Rows::most, Tags{n}, "inbox"), seed,
                 count, test::on_gpus() ? 20u : 2u, findings});
  EXPECT_EQ(test::total(world, findings), 0);
}

// Trivial without lanes. With lanes, 640 threads have too few registers for the unpacking code.
struct Token {
  Window<u32> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id();
    self.notify(inbox, RankId{(me + 1) % n}, Tag{0});
    self.wait(inbox, Tag{0}, 1, RankId{(me + n - 1) % n});
  }
};

struct TokenWithoutLanes : Token {
  static constexpr bool uses_lanes = false;
};
static_assert(detail::may_use_lanes<Token>() && !detail::may_use_lanes<TokenWithoutLanes>());

TEST(LanesOnGpus, are_left_out_where_ranks_do_not_fit_with_them_and_that_is_said_once) {
  if (!test::on_gpus()) GTEST_SKIP() << "needs GPUs";
  auto options = test::options(0);
  options.lanes = std::nullopt;
  World world(options);
  if (world.device_count() < 2 || world.devices().front()->whole())
    GTEST_SKIP() << "needs two GPUs that are not split";
  auto const inbox = world.window<u32>(1, Tags{1}, "inbox");
  for (u32 const threads : {256u, 640u}) {
    test::Listener heard;
    Launch launch;
    launch.threads = {threads, 1, 1};
    for (u32 round = 0; round < 2; ++round) world.run(Token{inbox}, launch);
    for (auto const& warning : heard.warnings()) RecordProperty("warning", warning);
    ASSERT_EQ(heard.warnings().size(), threads == 256 ? 0 : 1);
    for (char const* const piece : {"Token runs without lanes", "registers", "max_threads"})
      if (threads == 640) {
        EXPECT_NE(heard.warnings()[0].find(piece), std::string::npos) << heard.warnings()[0];
      }
  }
  test::Listener heard;
  Launch launch;
  launch.threads = {640, 1, 1};
  world.run(TokenWithoutLanes{{inbox}}, launch);
  EXPECT_TRUE(heard.warnings().empty());  // it wants none
}

INSTANTIATE_TEST_SUITE_P(Shapes, LaneMessages, testing::Values(1, 2, 3));

}  // namespace
}  // namespace meshpost
