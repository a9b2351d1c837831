// The copy server's thread in processes that are played by threads of this one: what it does when
// its beginning fails, and when processes are lost.
#include "copy/job/courier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/host_places.hpp"
#include "copy/job/rings.hpp"
#include "support/errors.hpp"
#include "world/out_of_band.hpp"
#include "world/players.hpp"

namespace meshpost::test {
namespace {

using copying::Courier;
using copying::Desk;
using copying::Message;

struct Drawer final : copying::Store {
  void write(u32, u64 offset, std::string_view all) override {
    if (fails) throw std::runtime_error("the drawer is stuck");
    while (locked) std::this_thread::sleep_for(1ms);
    std::ranges::copy(all, bytes.begin() + static_cast<i64>(offset));
  }
  void read(u32, u64 offset, char* target, u64 size) override {
    std::copy_n(bytes.begin() + static_cast<i64>(offset), size, target);
  }
  std::vector<char> bytes = std::vector<char>(1000, 'a');
  std::atomic<bool> fails{false};
  std::atomic<bool> locked{false};  // nothing is answered meanwhile
};

// What a process has: the desks of all are alike.
struct Office {
  explicit Office(Processes& processes)
      : peers({&processes, [](Processes*) {}}, processes.take_channel()) {}
  Desk& add(std::unique_ptr<net::Engine> engine) {
    return courier.add("open a desk", [&] {
      return std::make_unique<Desk>(
          std::move(engine), drawer, peers.count(),
          [this](u32 process) { return peers.processes().name(process); },
          std::make_unique<Notices>(peers.processes(), peers.channel() | u32{1} << 29),
          std::chrono::milliseconds(generous));
    });
  }
  copying::StatePtr put(Desk& desk, u32 process) {
    return courier.ask(desk, {Message::Kind::put, process, 5, 0, here.data(), here.size()});
  }
  std::vector<char> here = std::vector<char>(1000, 'b');
  Drawer drawer;
  Peers const peers;
  Courier courier{peers};
};

TEST(Courier, whose_thread_can_not_start_in_one_process_can_be_begun_again_in_all) {
  std::atomic<u32> refused = 0;
  hooks::install_places([&](std::string_view place) {
    if (place == "start a thread to serve a JobMemory" && refused++ == 0)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  expect_none(play(make_jobs(2), [&](Processes& processes) {
    Office office(processes);
    auto first = std::make_unique<copying::Rings>(office.peers);
    EXPECT_TRUE(says(error_of([&] { office.add(std::move(first)); }), Kind::out_of_memory,
                     {"start a thread to serve a JobMemory"}));
    auto& desk = office.add(std::make_unique<copying::Rings>(office.peers));
    u32 const other = 1 - processes.number();
    office.put(desk, other)->wait();
    office.peers.exchange("have copied");
    EXPECT_EQ(office.drawer.bytes, office.here);
    // Told to the desk that there is, and to no other.
    office.drawer.fails = processes.number() == 1;
    office.peers.exchange("break a drawer");
    if (processes.number() == 0) {
      auto const copy = office.put(desk, 1);
      EXPECT_TRUE(comes_true([&] { return copy->done(); }));
      if (copy->done()) {
        EXPECT_TRUE(says(error_of([&] { copy->wait(); }), Kind::peer_lost,
                         {"process 1 (", "the drawer is stuck"}));
      }
    }
    office.peers.exchange("end the test");
    office.courier.stop();
  }));
  hooks::install_places(nullptr);
}

// What a copy that has begun throws in the end.
Error end_of(copying::StatePtr const& copy) {
  EXPECT_TRUE(comes_true([&] { return copy->done(); }));
  return error_of([&] {
    if (copy->done()) copy->wait();
  });
}

// Two processes are stopped, one after the other, and their engines tell nothing of it.
TEST(Courier, ends_copies_with_each_process_that_is_lost_and_not_with_the_first_alone) {
  auto jobs = make_jobs(4);
  for (u32 process : {0, 1}) jobs[process].silence = 150ms;  // the others are silent for longer
  std::atomic<bool> first_is_lost = false, all_is_over = false;
  expect_none(play(jobs, [&](Processes& processes) {
    u32 const me = processes.number();
    Office office(processes);
    auto& desk = office.add(std::make_unique<copying::Rings>(office.peers));
    office.drawer.locked = me >= 2;
    office.peers.exchange("begin");
    if (me < 2) {
      auto const one = office.put(desk, 2), other = office.put(desk, 3);
      EXPECT_TRUE(says(end_of(one), Kind::peer_lost, {"process 2 (", "no sign of life"}));
      EXPECT_FALSE(other->done());
      office.put(desk, 1 - me)->wait();  // those between others go on
      if (me == 0) first_is_lost = true;
      EXPECT_TRUE(says(end_of(other), Kind::peer_lost, {"process 3 (", "no sign of life"}));
      office.put(desk, 1 - me)->wait();
      processes.post(7, 1 - me, "over");
      EXPECT_TRUE(comes_true([&] { return !processes.take_posts(7).empty(); }));
      if (me == 0) all_is_over = true;
    }
    while (me == 3 && !first_is_lost) {
      processes.post(7, 2, "I live");
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(comes_true([&] { return all_is_over.load(); }));
    office.drawer.locked = false;
    office.courier.stop();
  }));
}

// It passes on what desks say of losses to each other: they would wait for ever for messages that
// are lost.
TEST(Courier, ends_all_copies_and_says_why_when_process_0_is_gone) {
  std::atomic<bool> over = false;
  expect_none(play(make_jobs(3), [&](Processes& processes) {
    u32 const me = processes.number();
    Office office(processes);
    auto& desk = office.add(std::make_unique<copying::Rings>(office.peers));
    office.drawer.locked = me == 2;
    office.peers.exchange("begin");
    if (me == 1) {
      auto const copy = office.put(desk, 2);
      processes.post(7, 0, "go");
      for (auto const& one : {copy, office.put(desk, 2)}) {
        EXPECT_TRUE(says(end_of(one), Kind::peer_lost,
                         {"copy: process 0 (", "is gone: it has ended",
                          "passes on what copy servers say of losses"}));
      }
      Notices notices(processes, 1);
      EXPECT_TRUE(says(error_of([&] { notices.tell(2, "L"); }), Kind::peer_lost,
                       {"tell process 2 (", "process 0 (", "is gone"}));
      over = true;
    }
    if (me == 0) EXPECT_TRUE(comes_true([&] { return !processes.take_posts(7).empty(); }));
    else EXPECT_TRUE(comes_true([&] { return over.load(); }));
    office.drawer.locked = false;
    office.courier.stop();
  }));
}

}  // namespace
}  // namespace meshpost::test
