// Peers that end, well or not.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "net/engines/group.hpp"
#include "support/job.hpp"

namespace meshpost::net::test {
namespace {

using meshpost::test::require;
using Clock = std::chrono::steady_clock;  // one for all processes of a host

std::string variable(char const* name) { return std::getenv(name); }

// Publishes a text to the other processes: as a file that appears when it is complete.
void publish(std::string const& name, std::string const& text) {
  auto const path = variable("MESHPOST_TEST_FOLDER") + "/" + name;
  std::ofstream(path + ".part") << text;
  std::filesystem::rename(path + ".part", path);
}
std::string read(std::string const& name) {
  auto const path = variable("MESHPOST_TEST_FOLDER") + "/" + name;
  for (int i = 0; i < 3000 && !std::filesystem::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::string text;
  std::ifstream file(path);
  std::getline(file, text);
  return text;
}

struct Survivor {
  std::unique_ptr<Engine> engine;
  Recorder seen;
  u32 other = 0;  // the other survivor
  std::string memory = std::string(1 << 20, 'm');
  RemoteMemory victim;
  u64 started = 0;

  void write() {
    if (engine->write(1, memory, victim, 0, 1, started)) ++started;
  }
  template <class Holds>
  void until(Holds const& holds, char const* what) {
    auto const end = Clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      require(Clock::now() < end, what);
      engine->poll(seen);
    }
  }
};

void survive(Survivor& self, bool busy) {
  auto const& seen = self.seen;
  auto const end = Clock::now() + std::chrono::seconds(20);
  while (seen.lost.empty()) {
    require(Clock::now() < end, "the loss was never told");
    if (busy) self.write();
    self.engine->poll(self.seen);
  }
  auto const now = Clock::now().time_since_epoch();
  auto const died = Clock::duration(std::stoll(read("died")));
  std::printf("told after %.3f s: %s\n", std::chrono::duration<double>(now - died).count(),
              seen.lost[0].second.c_str());
  require(seen.lost[0].first == 1, "another one was lost");
  require(now - died < std::chrono::seconds(2), "it took more than 2 s");
  require(!seen.lost[0].second.empty(), "no reason was given");
  for (int i = 0; i < 10; ++i) self.write();
  self.until([&] { return seen.done.size() >= self.started; }, "operations were never done");

  // The other survivor still answers. More is sent than was in progress to the lost one.
  constexpr u64 many = 1000;
  u64 sent = 0;
  auto const all = [&] {
    if (sent < many && self.engine->send(self.other, std::string("still there"), {}, 0)) ++sent;
    return sent == many && seen.messages.size() >= many && seen.done.size() == self.started + many;
  };
  self.until(all, "the other one is out of reach");
  require(seen.lost.size() == 1, "a loss was told twice");
  publish("over" + std::to_string(self.other), "yes");
  auto const over = variable("MESHPOST_TEST_FOLDER") + "/over" + (self.other == 0 ? "2" : "0");
  self.until([&] { return std::filesystem::exists(over); }, "the other one did not end");
}

meshpost::test::Role const lost_role("net_lost", [] {
  auto const process = static_cast<u32>(std::stoul(variable("MESHPOST_PROCESS")));
  Survivor self;
  self.engine = make_engine(variable("MESHPOST_TEST_ENGINE"), "");
  self.other = process == 0 ? 2 : 0;
  publish("address" + std::to_string(process), self.engine->address());
  if (process == 1)
    publish("memory", self.engine->expose(self.memory.data(), Bytes{self.memory.size()}));
  std::vector<std::string> addresses;
  for (u32 i = 0; i < 3; ++i)
    addresses.push_back(i == process ? "" : read("address" + std::to_string(i)));
  self.engine->connect(addresses);
  if (process != 1) self.victim = self.engine->import(1, read("memory"));

  bool const busy = variable("MESHPOST_TEST_BUSY") == "yes";
  if (process != 1) {
    while (!self.engine->send(1, std::string("hello"), {}, ~u64{0})) self.engine->poll(self.seen);
    self.until([&] { return self.seen.done.size() == 1; }, "hello was never sent");
    self.seen.done.clear();
    return survive(self, busy);
  }
  self.until([&] { return self.seen.messages.size() == 2; }, "nobody said hello");
  if (busy) self.until([&] { return self.seen.data.size() >= 20; }, "nobody wrote");
  publish("died", std::to_string(Clock::now().time_since_epoch().count()));
  raise(SIGKILL);
});

std::string name_of_case(testing::TestParamInfo<std::pair<char const*, char const*>> const& one) {
  auto const& [engine, busy] = one.param;
  return std::string(engine).substr(4) + (*busy == 'y' ? "_busy" : "_idle");
}

class Killed : public testing::TestWithParam<std::pair<char const*, char const*>> {};
INSTANTIATE_TEST_SUITE_P(Each, Killed,
                         testing::Values(std::pair{"ofi:tcp", "no"}, std::pair{"ofi:tcp", "yes"},
                                         std::pair{"ofi:sockets", "no"},
                                         std::pair{"ofi:sockets", "yes"}),
                         name_of_case);

TEST_P(Killed, a_process_is_lost_once_and_the_others_go_on) {
  char folder[] = "/tmp/meshpost-test-XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  auto const [engine, busy] = GetParam();
  meshpost::test::Job job("net_lost", 3,
                          {{"MESHPOST_TEST_FOLDER", folder},
                           {"MESHPOST_TEST_ENGINE", engine},
                           {"MESHPOST_TEST_BUSY", busy}});
  auto const& ended = job.wait();
  EXPECT_TRUE(ended[1].killed()) << ended[1].out;
  for (u32 const survivor : {0, 2}) {
    EXPECT_TRUE(ended[survivor].well()) << ended[survivor].out;
    EXPECT_THAT(ended[survivor].out, testing::HasSubstr("told after"));
  }
  std::filesystem::remove_all(folder);
}

TEST(Ended, an_engine_that_was_closed_is_lost_to_the_others) {
  Group three(3, variants()[0]);
  std::string memory(1 << 20, 'm');
  auto const target =
      three.engines[0]->import(2, three.engines[2]->expose(memory.data(), Bytes{memory.size()}));
  ASSERT_TRUE(three.retry([&] { return three.engines[0]->send(2, std::string("hello"), {}, 0); }));
  ASSERT_TRUE(three.until([&] { return !three.seen[2].messages.empty(); }));
  u64 started = 1;
  while (started < 20)
    if (three.engines[0]->write(2, memory, target, 0, 0, started)) ++started;
    else three.engines[0]->poll(three.seen[0]);
  three.engines.pop_back();
  ASSERT_TRUE(
      three.until([&] { return three.seen[0].lost.size() + three.seen[1].lost.size() == 2; }));
  ASSERT_TRUE(three.until([&] { return three.seen[0].done.size() == started; }));
  EXPECT_EQ(three.seen[0].lost[0].first, 2u);
  EXPECT_EQ(three.seen[1].lost[0].first, 2u);
  EXPECT_NE(three.seen[1].lost[0].second, "");
}

// libfabric's ofi_rxm may crash in this case (Provider::separate_data).
TEST(Ended, an_engine_that_was_closed_while_a_write_came_in_takes_nobody_with_it) {
  for (u32 const closed : {0, 1})
    for (u32 const polls : {1, 3}) {
      Group two(2, variants()[0]);
      std::string const source(8 << 20, 's');
      std::string memory(source.size(), 'm');
      auto const target =
          two.engines[0]->import(1, two.engines[1]->expose(memory.data(), Bytes{memory.size()}));
      ASSERT_TRUE(two.retry([&] { return two.engines[0]->write(1, source, target, 0, 0, 1); }));
      ASSERT_TRUE(two.until([&] { return memory.front() == 's'; }));
      for (u32 poll = 0; poll < polls; ++poll) two.engines[1]->poll(two.seen[1]);
      ASSERT_EQ(memory.back(), 'm') << "the write is over";
      two.engines[closed].reset();
      auto& other = two.seen[1 - closed];
      auto const begin = std::chrono::steady_clock::now();
      while (other.lost.empty() &&
             std::chrono::steady_clock::now() - begin < std::chrono::seconds(30))
        two.engines[1 - closed]->poll(other);
      EXPECT_EQ(other.lost.size(), 1u);
      EXPECT_TRUE(two.seen[1].data.empty());
    }
}

}  // namespace
}  // namespace meshpost::net::test
