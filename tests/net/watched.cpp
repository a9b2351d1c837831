// Rounds in an engine that are taken away from a thread that does not come back.
#include "net/watched.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "net/channel.hpp"

namespace meshpost::test {
namespace {

using net::Rounds;
using namespace std::chrono_literals;

class Hanging final : public net::Engine {
 public:
  std::string name() const override { return "hanging"; }
  std::string address() const override { return {}; }
  void connect(std::vector<std::string> const&) override {}
  Bytes most() const override { return Bytes{4096}; }
  bool send(u32, std::span<char const>, std::span<char const>, u64) override { return true; }
  std::string expose(void*, Bytes) override { return {}; }
  net::RemoteMemory import(u32, std::string const&) override { return {}; }
  bool write(u32, std::span<char const>, net::RemoteMemory const&, u64, u32, u64) override {
    return true;
  }
  bool outlives_peers() const override { return outlives; }
  bool poll(net::Events& events) override {
    events.on_done(1);
    polls = true;
    while (hangs) std::this_thread::sleep_for(1ms);
    comes_back = true;
    events.on_done(2);
    return true;
  }
  bool outlives = false;
  std::atomic<bool> hangs{true}, polls{false}, comes_back{false};
};

struct Told final : net::Events {
  void on_message(u32, std::span<char const>) override {}
  void on_data(u32, u32) override {}
  void on_done(u64 cookie) override { last = cookie; }
  void on_lost(u32, std::string const&) override {}
  u64 last = 0;
};

TEST(Rounds, that_last_are_taken_unless_the_process_may_have_been_stopped) {
  Rounds rounds;
  rounds.begin();
  for (int look = 0; look < 3; ++look) {
    EXPECT_FALSE(rounds.take_if_long());
    std::this_thread::sleep_for(Rounds::longest / 2);
  }
  EXPECT_TRUE(rounds.end());
  rounds.begin();
  auto const begun = std::chrono::steady_clock::now();
  while (!rounds.take_if_long()) std::this_thread::sleep_for(1ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, Rounds::longest);
  EXPECT_TRUE(rounds.taken());
  EXPECT_FALSE(rounds.end());
}

// Those that supervise a World's runs are its own thread and users' threads.
TEST(Rounds, are_taken_once_though_several_supervise_and_all_of_them_find_it_taken) {
  Rounds rounds(200ms);
  u64 behind = 0;  // what a round reads and writes is the supervisors' when it was taken
  std::atomic<u32> took = 0, ended = 0;
  std::vector<std::thread> supervisors;
  for (int i = 0; i < 4; ++i)
    supervisors.emplace_back([&] {
      while (!rounds.taken()) {
        if (rounds.take_if_long()) ++took;
        std::this_thread::sleep_for(100us);
      }
      EXPECT_FALSE(rounds.take_if_long());
      EXPECT_EQ(behind, 1000u);
      ++ended;
    });
  for (u32 i = 0; i < 1000; ++i) {
    rounds.begin();
    if (!rounds.end()) ADD_FAILURE() << "a short round was taken";
    ++behind;
  }
  rounds.begin();
  for (auto& one : supervisors) one.join();
  EXPECT_EQ(took, 1u);
  EXPECT_EQ(ended, 4u);
  EXPECT_FALSE(rounds.end());
}

// A thread that is in there for half a second is slow, and not lost.
TEST(Channel, takes_a_thread_from_an_engine_that_outlives_its_peers_at_the_deadline_alone) {
  struct Case {
    Case(bool outlives, std::chrono::milliseconds patience, bool is_taken) : taken(is_taken) {
      auto one = std::make_unique<Hanging>();
      engine = one.get();
      engine->outlives = outlives;
      channel = std::make_unique<net::Channel>(std::move(one), 2, net::Losing{nullptr, patience});
      thread = std::thread([this] { channel->poll(); });
    }
    bool taken;
    Hanging* engine;
    std::unique_ptr<net::Channel> channel;
    std::thread thread;
  };
  static auto* const all = new std::deque<Case>;  // for the threads that stay
  all->emplace_back(false, 20'000ms, true);
  all->emplace_back(true, 20'000ms, false);
  all->emplace_back(true, 100ms, true);
  all->emplace_back(true, 0ms, false);
  for (auto& one : *all)
    while (!one.engine->polls) std::this_thread::sleep_for(1ms);
  bool over = false;
  for (auto const until = std::chrono::steady_clock::now() + Rounds::longest + 100ms; !over;
       std::this_thread::sleep_for(1ms)) {
    over = std::chrono::steady_clock::now() > until;
    for (auto& one : *all) one.channel->take_if_it_hangs();
  }
  for (auto& one : *all) {
    EXPECT_EQ(one.channel->hangs(), one.taken) << one.engine->outlives;
    one.engine->hangs = false;
    if (one.channel->hangs()) one.thread.detach();
    else one.thread.join();
  }
}

TEST(WatchedEngine, tells_nothing_and_does_not_return_once_its_round_was_taken) {
  struct All {
    Rounds rounds;
    Hanging* engine = new Hanging;
    net::Watched watched{std::unique_ptr<net::Engine>(engine), rounds};
    Told told;
    std::atomic<bool> returned{false};
  };
  static auto* const all = new All;  // for the thread, which stays
  std::thread([] {
    all->watched.poll(all->told);
    all->returned = true;
  }).detach();
  while (!all->engine->polls) std::this_thread::sleep_for(1ms);
  while (!all->rounds.take_if_long()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(all->told.last, 1U);
  all->told.last = 3;  // the supervisor's now
  all->engine->hangs = false;
  while (!all->engine->comes_back) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(all->told.last, 3U);
  EXPECT_FALSE(all->returned);
}

}  // namespace
}  // namespace meshpost::test
