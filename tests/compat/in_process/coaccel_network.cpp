// The messages of COACCEL's MPI devices between two networks of this process, without MPI: for the
// sanitizers, which know nothing of MPI's libraries.
#include "compat/coaccel_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "support/errors.hpp"

namespace meshpost::coaccel {
namespace {

using test::error_of;
using test::says;

struct Wires {
  std::mutex mutex{};
  std::deque<std::string> to[2]{};
};

// An engine over queues, which refuses messages when they are full.
class QueueEngine final : public net::Engine {
 public:
  QueueEngine(Wires& wires, u32 own) : wires_(wires), own_(own) {}
  std::string name() const override { return "queues"; }
  std::string address() const override { return {}; }
  void connect(std::vector<std::string> const&) override {}
  Bytes most() const override { return Bytes{4096}; }
  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override {
    std::scoped_lock const lock(wires_.mutex);
    if (wires_.to[peer].size() == 3) return false;
    wires_.to[peer]
        .emplace_back(header.begin(), header.end())
        .append(payload.data(), payload.size());
    done_.push_back(cookie);
    return true;
  }
  std::string expose(void*, Bytes) override { return {}; }
  net::RemoteMemory import(u32, std::string const&) override { return {}; }
  bool write(u32, std::span<char const>, net::RemoteMemory const&, u64, u32, u64) override {
    return false;
  }
  bool poll(net::Events& events) override {
    for (auto const cookie : std::exchange(done_, {})) events.on_done(cookie);
    std::deque<std::string> come;
    {
      std::scoped_lock const lock(wires_.mutex);
      come.swap(wires_.to[own_]);
    }
    for (auto const& bytes : come) events.on_message(1 - own_, bytes);
    return !come.empty();
  }

 private:
  Wires& wires_;
  u32 own_;
  std::vector<u64> done_;
};

struct CoaccelNetwork : testing::Test {
  Wires wires;
  Network zero{std::make_unique<QueueEngine>(wires, 0), 0, 2, std::chrono::seconds(30)};
  Network one{std::make_unique<QueueEngine>(wires, 1), 1, 2, std::chrono::seconds(30)};
};

TEST_F(CoaccelNetwork, carries_messages_of_many_threads_through_failures_and_new_openings) {
  constexpr std::size_t size = 20'001;
  auto const take_part = [&](u32 own, u32 id) {
    auto& network = own == 0 ? zero : one;
    for (int round = 0; round < 6; ++round) {
      auto const key = network.open(1 - own, id);
      for (int i = 0; i < 5; ++i) {
        char const value = static_cast<char>(10 * round + i);
        std::vector<char> bytes(size, own == 0 ? value : 'x');
        auto const message = network.start(key, own == 0 ? Way::out : Way::in,
                                           {{bytes.data(), 99}, {bytes.data() + 99, size - 99}});
        network.wait(*message);
        EXPECT_EQ(std::ranges::count(bytes, value), static_cast<long>(size)) << round << " " << i;
      }
      if (round % 2 == 1) {
        if (own == 1) network.fail(key, Error(Kind::misuse, "test", "planted", "none"));
        char byte = 'y';
        auto const message = network.start(key, own == 0 ? Way::out : Way::in, {{&byte, 1}});
        EXPECT_TRUE(says(error_of([&] { network.wait(*message); }), Kind::misuse, {"planted"}));
      }
      network.close(key);
    }
  };
  std::vector<std::thread> threads;
  for (u32 id = 0; id < 3; ++id)
    for (u32 const own : {0u, 1u}) threads.emplace_back(take_part, own, id);
  for (auto& thread : threads) thread.join();
}

// Else a sender to several processes would have no room left for the others.
TEST_F(CoaccelNetwork, takes_in_what_comes_while_no_link_is_open) {
  auto const here = zero.open(1, 5);
  std::vector<char> bytes(10);
  std::vector<std::shared_ptr<Message>> messages;
  for (auto& byte : bytes) messages.push_back(zero.start(here, Way::in, {{&byte, 1}}));
  auto const left = [&] {
    std::scoped_lock const lock(wires.mutex);
    return wires.to[1].size();
  };
  auto const since = std::chrono::steady_clock::now();
  while (left() != 0 && std::chrono::steady_clock::now() - since < std::chrono::seconds(10))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(left(), 0u);
  auto const there = one.open(0, 5);
  char byte = 'z';
  for (auto const& message : messages) {
    one.wait(*one.start(there, Way::out, {{&byte, 1}}));
    zero.wait(*message);
  }
  EXPECT_EQ(bytes, std::vector<char>(10, 'z'));
}

TEST_F(CoaccelNetwork, lets_a_short_message_pass_a_long_one_of_another_link) {
  constexpr std::size_t size = std::size_t{32} << 20;
  std::vector<char> source(size, 'a'), target(size);
  LinkKey here[2], there[2];
  for (u32 id = 0; id < 2; ++id) here[id] = zero.open(1, id), there[id] = one.open(0, id);
  auto const long_come = one.start(there[0], Way::in, {{target.data(), size}});
  auto const long_sent = zero.start(here[0], Way::out, {{source.data(), size}});
  std::atomic<bool> over{false};
  std::thread waits([&] {
    one.wait(*long_come);
    over = true;
  });
  char from = 'b', to = 'c';
  auto const short_come = one.start(there[1], Way::in, {{&to, 1}});
  zero.wait(*zero.start(here[1], Way::out, {{&from, 1}}));
  one.wait(*short_come);
  EXPECT_FALSE(over) << "it has waited for the long one";
  waits.join();
  zero.wait(*long_sent);
  EXPECT_EQ(to, 'b');
  EXPECT_EQ(source, target);
}

TEST_F(CoaccelNetwork, that_ends_ends_waits_in_both) {
  auto const here = zero.open(1, 0), there = one.open(0, 0);
  char byte = 'y';
  auto const mine = zero.start(here, Way::in, {{&byte, 1}});
  auto const theirs = one.start(there, Way::in, {{&byte, 1}});
  zero.end("planted");
  EXPECT_TRUE(says(error_of([&] { zero.wait(*mine); }), Kind::misuse, {"mpi:1:0", "planted"}));
  EXPECT_TRUE(says(error_of([&] { one.wait(*theirs); }), Kind::misuse, {"process 0", "planted"}));
  EXPECT_TRUE(says(error_of([&] { zero.open(1, 1); }), Kind::misuse, {"open mpi:1:1", "planted"}));
}

}  // namespace
}  // namespace meshpost::coaccel
