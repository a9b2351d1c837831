// Several Worlds on the same devices, from several threads. On GPUs their runs are queued one
// behind the other; on CPU devices each World has threads of its own.
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

struct Stay {  // for a while, then all ranks meet
  explicit Stay(std::chrono::nanoseconds time) : nanoseconds(static_cast<u64>(time.count())) {}
  u64 nanoseconds;
  MESHPOST_FN void operator()(Rank& self) const {
    u64 const begin = self.now();
    while (self.now() - begin < nanoseconds) {
    }
    self.barrier();
  }
};

// Each rank passes on its value plus one.
struct Hand {
  Window<u32> words;
  u32 fails;  // the rank that fails; none: no rank has this number
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == fails) self.fail("the run that fails");
    auto const mine = words.local(self);
    if (self.thread() == 0) mine[1] = mine[0] + 1;
    self.barrier();  // before the received value replaces it
    self.put_notify(words.at(RankId{(self.id() + 1) % self.size()}), mine.subspan(1, 1), Tag{0});
    self.wait(words, Tag{0});
  }
};
constexpr u32 nobody = ~0u;

std::string where() { return test::devices(test::Spread::several_devices); }

// A World with a window, and runs in flight.
struct Chain {
  explicit Chain(u32 ranks) : world(test::options(ranks, where())) {}
  void launch(u32 count, u32 fails = nobody) {
    for (u32 i = 0; i < count; ++i) runs.push_back(world.launch(Hand{words, fails}));
  }
  void wait() {
    for (auto& run : runs) run.wait();
    runs.clear();
  }
  u32 value() { return words.read(RankId{world.size() - 1})[0]; }

  World world;
  Window<u32> words = world.window<u32>(2, Tags{1});
  std::vector<meshpost::Run> runs{};
};

TEST(Worlds, queue_their_runs_on_the_same_devices_in_turns) {
  Chain one(2), two(3), three(1);
  for (u32 i = 0; i < 30; ++i) {
    one.launch(1 + i % 3);
    two.launch(1);
    three.launch(2);
  }
  two.wait();
  one.wait();
  three.wait();
  EXPECT_EQ(one.value(), 60u);
  EXPECT_EQ(two.value(), 30u);
  EXPECT_EQ(three.value(), 60u);
}

// If two devices had the launches of two threads in different order, both would wait for ever.
TEST(Worlds, of_several_threads_are_launched_in_one_order_on_all_devices) {
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      Chain chain(1 + t % 2);
      for (u32 i = 0; i < 20; ++i) {
        chain.launch(5);
        if (i % (t + 2) == 0) chain.wait();
      }
      EXPECT_EQ(chain.value(), 100u);
    });
  for (auto& thread : threads) thread.join();
}

TEST(Worlds, wait_behind_others_without_end_whatever_their_own_deadline) {
  World first(test::options(1));
  auto options = test::options(1);
  options.deadline = 100ms;
  World second(options);
  auto const words = second.window<u32>(2, Tags{1});
  constexpr auto stays = test::timeout_factor * 250ms;
  auto busy = first.launch(Stay{stays});
  auto const begin = std::chrono::steady_clock::now();
  auto behind = second.launch(Hand{words, nobody});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, stays * 3 / 4) << "a launch waits for no run";
  behind.wait();
  busy.wait();
  EXPECT_EQ(words.read(RankId{0})[0], 1u);
}

TEST(Worlds, fail_without_the_runs_of_others_behind_them) {
  test::Listener const listener;
  Chain good(2), bad(2);
  for (u32 round = 0; round < 3; ++round) {
    good.launch(5);
    auto busy = bad.world.launch(Stay{test::timeout_factor * 100ms});  // until all are launched
    bad.launch(2);
    bad.launch(1, bad.world.size() - 1);
    good.launch(5);
    bad.launch(3);  // behind its own failure
    good.launch(5);
    good.wait();
    busy.wait();
    bad.runs[0].wait();
    bad.runs[1].wait();
    for (u32 i = 2; i < 6; ++i)
      EXPECT_TRUE(
          says(error_of([&] { bad.runs[i].wait(); }), Kind::kernel_failed, {"the run that fails"}))
          << i;
    bad.runs.clear();
    bad.launch(2);
    bad.wait();
    EXPECT_EQ(good.value(), 15 * (round + 1));
  }
}

TEST(Worlds, end_while_others_are_queued_behind_them) {
  Chain stays(2);
  for (u32 i = 0; i < 5; ++i) {
    Chain passes(1 + i % 2);
    passes.launch(3);
    stays.launch(3);
  }
  stays.wait();
  EXPECT_EQ(stays.value(), 15u);
}

// It has the GPUs alone: no other kernel may delay the host's messages to its ranks.
TEST(Worlds, whose_host_takes_part_let_others_wait_and_go_on) {
  Chain plain(1);
  World world(test::options(1, where()));
  auto const words = world.window<u32>(2, Tags{1});
  for (u32 i = 0; i < 5; ++i) {
    plain.launch(3);
    auto run = world.launch(Hand{words, nobody}, {.with_host = true});
    std::thread other([&] { plain.launch(3); });
    run.wait();
    other.join();
    plain.wait();
  }
  EXPECT_EQ(plain.value(), 30u);
  EXPECT_EQ(words.read(RankId{0})[0], 5u);
}

}  // namespace
}  // namespace meshpost
