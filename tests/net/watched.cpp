// Rounds in an engine that are taken away from a thread that does not return.
#include "net/watched.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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
  bool poll(net::Events& events) override {
    events.on_done(1);
    polls = true;
    while (hangs) std::this_thread::sleep_for(1ms);
    comes_back = true;
    events.on_done(2);
    return true;
  }
  std::atomic<bool> hangs{true}, polls{false}, comes_back{false};
};

struct Told final : net::Events {
  void on_message(u32, std::span<char const>) override {}
  void on_data(u32, u32) override {}
  void on_done(u64 cookie) override { last = cookie; }
  void on_lost(u32, std::string const&) override {}
  u64 last = 0;
};

TEST(Rounds, have_a_limit_and_0_is_none) {
  Rounds for_ever{0ms}, brief{20ms};
  for_ever.begin(), brief.begin();
  while (!brief.take_if_long()) {
    EXPECT_FALSE(for_ever.take_if_long());
    std::this_thread::sleep_for(1ms);
  }
  for (int look = 0; look < 3; ++look) EXPECT_FALSE(for_ever.take_if_long());
  EXPECT_TRUE(for_ever.end());
}

TEST(Rounds, are_taken_for_all_of_several_supervisors) {
  Rounds rounds{20ms};
  rounds.begin();
  std::atomic<u32> took{0};
  std::vector<std::jthread> supervisors;
  for (u32 i = 0; i < 4; ++i)
    supervisors.emplace_back([&] {
      while (!rounds.take_if_long()) std::this_thread::sleep_for(1ms);
      ++took;
      EXPECT_TRUE(rounds.taken());
    });
  supervisors.clear();
  EXPECT_EQ(took, 4u);
  EXPECT_FALSE(rounds.end());
}

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

TEST(WatchedEngine, tells_nothing_and_does_not_return_once_its_round_was_taken) {
  struct All {
    Rounds rounds;
    Hanging* engine = new Hanging;
    net::Watched watched{std::unique_ptr<net::Engine>(engine), rounds};
    Told told;
    std::atomic<bool> returned{false};
  };
  static auto* const all = new All;  // for the thread, which is not ended
  std::thread([] {
    all->watched.poll(all->told);
    all->returned = true;
  }).detach();
  while (!all->engine->polls) std::this_thread::sleep_for(1ms);
  while (!all->rounds.take_if_long()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(all->told.last, 1U);
  all->told.last = 3;  // now it belongs to the supervisor
  all->engine->hangs = false;
  while (!all->engine->comes_back) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(all->told.last, 3U);
  EXPECT_FALSE(all->returned);
}

}  // namespace
}  // namespace meshpost::test
