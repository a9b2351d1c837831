// After any fault between the nodes of a job, its processes end in time and say why. No rank
// accepts wrong bytes.
#include <meshpost/meshpost.hpp>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "support/job.hpp"
#include "support/libfabric_headers.hpp"
#include "support/troubles.hpp"

namespace meshpost {
namespace {

using test::Role;
using test::Trouble;
using test::Troubles;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr u32 most = 20'000;  // words of a large put: several pieces of a connection's bytes

MESHPOST_FN u32 word(u32 from, u32 round, u32 i) { return (from * 131 + round) * 7919 + i; }

// Short and long puts, gets and words to the next rank, which is on another node.
struct Traffic {
  Window<u32> inbox, outbox;
  u32 run;

  MESHPOST_FN void expect(Rank& self, LocalSpan<u32> got, u32 from, u32 round, u32 count) const {
    for (u32 i = 0; i < count; ++i)
      if (got[i] != word(from, round, i)) self.fail("wrong bytes");
  }
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), to = (self.id() + 1) % n, from = (self.id() + n - 1) % n;
    auto const mine = outbox.local(self), got = inbox.local(self);
    for (u32 step = 0; step < 12; ++step) {
      u32 const round = run * 100 + step;
      u32 const count = step % 4 == 3 ? most : 1 + round % 60;
      for (u32 i = 0; i < most; ++i) mine[i] = word(self.id(), round, i);
      self.put_notify(inbox.at(RankId{to}, 0), mine.subspan(0, count), Tag{0});
      self.wait(inbox, Tag{0});
      expect(self, got, from, round, count);
      self.barrier();
      self.get(got.subspan(0, count), outbox.at(RankId{to}, 0));
      self.flush(inbox);
      expect(self, got, to, round, count);
      self.barrier();
    }
  }
};

// The hosts have an engine of their own. The first write after a pause does not go by it.
void write_and_read(World& world, Window<u32> const& mail, u32 round) {
  u32 const own = world.process(), to = (own + 1) % world.processes();
  std::vector<u32> mine(most), got(most);
  for (u32 i = 0; i < most; ++i) mine[i] = word(own, round, i);
  for (u64 const words : {u64{1}, u64{most}, u64{most}}) {
    mail.write(RankId{to}, 0, std::span<u32 const>(mine).first(words));
    mail.read(RankId{to}, 0, std::span(got).first(words));
    if (!std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(words), mine.begin()))
      std::printf("wrong bytes\n");
  }
}

Role const traffic("traffic", [] {
  try {
    World world;
    auto const mail = world.window<u32>(most, Tags{0}, "mail");
    auto const inbox = world.window<u32>(most, Tags{2}, "inbox");
    auto const outbox = world.window<u32>(most, Tags{1}, "outbox");
    for (u32 run = 0; run < 3; ++run) {
      write_and_read(world, mail, run);
      world.run(Traffic{inbox, outbox, run});
    }
    std::printf("all is well\n");
  } catch (Error const& error) {
    std::printf("error: %s\n", error.what());
  }
});

constexpr u32 processes = 4, deadline = 3;  // two on each node; seconds
// Time in which a process starts, and in which it ends after it has been told.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr u32 start = 10, end = 8;
#else
constexpr u32 start = 3, end = 4;
#endif

test::Variables variables(std::string const& engine, std::string const& detour = {}) {
  auto const seconds = std::to_string(deadline);
  test::Variables all{{"MESHPOST_RANKS", "1"},
                      {"MESHPOST_DEVICES", "cpu:1"},
                      {"MESHPOST_NET", engine},
                      {"MESHPOST_DEADLINE", seconds},
                      {"MESHPOST_PEER_DEADLINE", seconds},
                      {"MESHPOST_START_DEADLINE", std::to_string(start + 1)}};
  if (!detour.empty()) all[test::detour_variable] = detour;
  return all;
}
test::Variables node_of(u32 process) { return {{"MESHPOST_NODE", std::to_string(process % 2)}}; }

// Checks how the job ended. Returns the number of processes with an error.
u32 expect_truth_or_error(std::vector<test::Ended> const& ended) {
  u32 errors = 0;
  for (auto const& one : ended) {
    EXPECT_TRUE(one.well()) << "status " << one.status << one.out;
    EXPECT_THAT(one.out, AnyOf(HasSubstr("all is well"), HasSubstr("error: ")));
    EXPECT_THAT(one.out, Not(HasSubstr("wrong bytes")));
    if (one.out.find("error: ") == std::string::npos) continue;
    ++errors;
    EXPECT_THAT(one.out, AnyOf(HasSubstr("[peer lost]"), HasSubstr("[deadline]"),
                               HasSubstr("[bad environment]")));
    EXPECT_THAT(one.out, AnyOf(HasSubstr("process "), HasSubstr("what listens at")));
  }
  return errors;
}

// -- the engine's connections, and those between the processes

u64 seconds_of(std::chrono::steady_clock::duration time) {
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

// The greetings of libfabric's tcp, 56 bytes each way, must come whole, as they do in TCP's first
// segment. An end that reads only a part of the answer closes the connection, while the other
// already sends.
constexpr u64 greeting = 256;

// The first call goes to process 0's bootstrap and is not of an engine.
class Engines {
 public:
  bool called(std::string const& target) {
    if (bootstrap_.empty()) bootstrap_ = target;
    return target != bootstrap_;
  }

 private:
  std::string bootstrap_;
};

class Ways : public testing::TestWithParam<Trouble> {};

TEST_P(Ways, that_are_slow_carry_all_there_is) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::atomic<u32> connections = 0;
  Engines engines;
  auto const plan = [&](std::string const& target, u32) {
    ++connections;
    auto trouble = GetParam();
    if (engines.called(target)) trouble.at_first = greeting;
    return trouble;
  };
  Troubles const troubles(seed, plan, test::own_host());
  auto all = variables("ofi:tcp", troubles.address());
  for (auto const* const one : {"", "PEER_", "START_"})  // slow is not lost
    all[std::string("MESHPOST_") + one + "DEADLINE"] = "30";
  test::Job job("traffic", processes, all, node_of);
  for (auto const& one : job.wait()) EXPECT_THAT(one.out, HasSubstr("all is well"));
  EXPECT_GE(connections, processes - 1 + 4);  // to process 0, and each pair of the two nodes
}
INSTANTIATE_TEST_SUITE_P(
    And, Ways,
    testing::Values(Trouble{.delay = std::chrono::milliseconds(2)}, Trouble{.most_at_once = 700},
                    Trouble{.delay = std::chrono::microseconds(200), .most_at_once = 5000},
                    Trouble{.bytes_per_second = 3'000'000}));

struct LongPut {
  Window<u64> inbox, outbox;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.put_notify(inbox.at(RankId{1}, 0), outbox.local(self), Tag{0});
    if (self.id() == 1) self.wait(inbox, Tag{0});
  }
};
Role const long_put("long_put", [] {
  World world;
  u64 const words = 10'000'000 / sizeof(u64);
  auto const inbox = world.window<u64>(words, Tags{1}, "inbox");
  auto const outbox = world.window<u64>(words, Tags{0}, "outbox");
  world.run(LongPut{inbox, outbox});
  std::printf("all is well\n");
});

// 10 MB at 2.5 MB/s: 4 s, in pieces of 0.1 s.
TEST(LongPuts, that_flow_may_take_longer_than_the_deadline) {
  Engines engines;
  auto const plan = [&](std::string const& target, u32) {
    Trouble trouble;
    if (engines.called(target)) trouble = {.at_first = greeting, .bytes_per_second = 2'500'000};
    return trouble;
  };
  Troubles const troubles(1, plan, test::own_host());
  auto all = variables("ofi:tcp", troubles.address());
  all["MESHPOST_DEADLINE"] = "1.5";
  all["MESHPOST_PEER_DEADLINE"] = all["MESHPOST_START_DEADLINE"] = "30";
  test::Job job("long_put", 2, all, node_of);
  for (auto const& one : job.wait()) {
    EXPECT_THAT(one.out, HasSubstr("all is well"));
    EXPECT_GT(one.seconds, 3) << "else this shows nothing";
  }
}

struct Broken {
  char const* name;
  Trouble::Fault fault;
  bool engine;  // or those between the processes
  u32 felt;     // rounds with an effect; in others all bytes pass before the fault
};
class Connections : public testing::TestWithParam<Broken> {};

TEST_P(Connections, that_break_end_all_processes_in_time) {
  auto const [name, fault, engine, all] = GetParam();
  u32 const wanted = std::getenv(test::hosts_variable)
                         ? 1
                         : all;  // hosts differ only in the route of the connections
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  // A connection of the engine carries some 750 kB. One of the bootstrap carries some 13 kB, the
  // last of them at the very end.
  u64 const most_felt = engine ? 200'000 : 8'000;
  u32 felt = 0, errors = 0;
  for (u32 round = 0; felt < wanted && round < 20 * wanted; ++round) {
    Trouble trouble{.fault = fault};
    trouble.at = random() % (most_felt + most_felt / 2);
    trouble.forth = random() % 2 != 0;
    trouble.bit = random() % 8;
    if (engine) trouble.spares = test::harmful_to_libfabric(*trouble.bit);
    SCOPED_TRACE(testing::Message()
                 << "round " << round << ", bit " << *trouble.bit << " of byte " << trouble.at);
    Engines engines;
    u32 left = static_cast<u32>(random() % 3);
    auto const plan = [&](std::string const& target, u32) {
      bool const of_engine = engines.called(target);
      auto one = of_engine == engine && left-- == 0 ? trouble : Trouble{};
      if (of_engine) one.at_first = greeting;
      return one;
    };
    Troubles const troubles(random(), plan, test::own_host());
    auto const begin = Troubles::Clock::now();
    test::Job job("traffic", processes, variables("ofi:tcp", troubles.address()), node_of);
    auto const ended = job.wait();
    u32 const here = expect_truth_or_error(ended);
    if (!troubles.fault()) {
      EXPECT_EQ(here, 0u) << ended[0].out;
      continue;
    }
    // Not every fault has an effect: a changed bit may never be read, and a process that is cut off
    // while it joins connects again.
    // Of one at the very end one process alone may hear. The first that counts is heard by several.
    if (here > (felt == 0 ? 1u : 0u)) ++felt;
    errors += here;
    for (auto const& one : ended)
      EXPECT_LT(one.seconds, seconds_of(*troubles.fault() - begin) + 1 + deadline + end) << one.out;
  }
  EXPECT_EQ(felt, wanted);
  EXPECT_GT(errors, felt);
}
INSTANTIATE_TEST_SUITE_P(And, Connections,
                         testing::Values(Broken{"engine_reset", Trouble::Fault::reset, true, 3},
                                         Broken{"engine_flip", Trouble::Fault::flip, true, 3},
                                         Broken{"engine_stall", Trouble::Fault::stall, true, 2},
                                         Broken{"bootstrap_reset", Trouble::Fault::reset, false, 3},
                                         Broken{"bootstrap_flip", Trouble::Fault::flip, false, 3},
                                         Broken{"bootstrap_stall", Trouble::Fault::stall, false,
                                                2}),
                         [](auto const& one) { return std::string(one.param.name); });

// -- messages

class Messages : public testing::TestWithParam<char const*> {};

TEST_P(Messages, that_go_wrong_end_all_processes_in_time) {
  u64 const seed = std::random_device{}() % 1'000'000;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (u64 round = 0; round < 2; ++round) {
    auto const engine =
        std::string("faulty:") + GetParam() + ":" + std::to_string(seed + round) + ":ofi:tcp";
    SCOPED_TRACE(engine);
    u32 const victim = static_cast<u32>((seed + round) % processes);
    test::Job job("traffic", processes, variables("ofi:tcp"), [&](u32 process) {
      auto own = node_of(process);
      if (process == victim) own["MESHPOST_NET"] = engine;
      return own;
    });
    auto const ended = job.wait();
    EXPECT_EQ(expect_truth_or_error(ended), processes) << ended[0].out;
    for (auto const& one : ended) EXPECT_LT(one.seconds, start + deadline + end) << one.out;
  }
}
INSTANTIATE_TEST_SUITE_P(And, Messages,
                         testing::Values("flip", "truncate", "duplicate", "drop", "lose"),
                         [](auto const& one) { return std::string(one.param); });

struct Nothing {
  MESHPOST_FN void operator()(Rank&) const {}
};
Role const nothing("nothing", [] {
  try {
    World().run(Nothing{});
    std::printf("all is well\n");
  } catch (Error const& error) {
    std::printf("error: %s\n", error.what());
  }
});

// The faulty engine chooses among the first 200 that it gets.
u64 seed_that_drops(u64 message) {
  for (u64 seed = 0;; ++seed)
    if (std::mt19937_64(seed)() % 200 == message) return seed;
}

// Two other ranks tell a rank that they have ended, and later that they have cleared their
// counters.
TEST(Messages, of_a_runs_end_that_are_lost_end_it_at_the_deadline) {
  for (u64 const message : {0, 3}) {
    auto all = variables("ofi:tcp");
    all["MESHPOST_DEADLINE"] = "1";
    test::Job job("nothing", processes, all, [&](u32 process) {
      auto own = node_of(process);
      if (process == 1)
        own["MESHPOST_NET"] =
            "faulty:drop:" + std::to_string(seed_that_drops(message)) + ":ofi:tcp";
      return own;
    });
    for (auto const& one : job.wait()) {
      EXPECT_THAT(one.out, HasSubstr("all ranks have ended, but for 1 s not all have heard so"));
      EXPECT_THAT(one.out, HasSubstr("the network lost the others"));
      EXPECT_LT(one.seconds, start + 1 + end);
    }
  }
}

}  // namespace
}  // namespace meshpost
