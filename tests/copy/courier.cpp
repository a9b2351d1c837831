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
    std::ranges::copy(all, bytes.begin() + static_cast<i64>(offset));
  }
  void read(u32, u64 offset, char* target, u64 size) override {
    std::copy_n(bytes.begin() + static_cast<i64>(offset), size, target);
  }
  std::vector<char> bytes = std::vector<char>(1000, 'a');
  std::atomic<bool> fails{false};
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

}  // namespace
}  // namespace meshpost::test
