// One bit is changed in the sizes that libfabric puts before messages, or in the first messages of
// a connection. No process crashes or hangs, except by two fields that make libfabric do so.
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "net/engine.hpp"
#include "support/job.hpp"
#include "support/libfabric_headers.hpp"
#include "support/troubles.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::Role;
using test::Trouble;
using test::Troubles;
using Clock = Troubles::Clock;

// Reads all incoming bytes, as a channel does.
struct Reader final : net::Events {
  void on_message(u32, std::span<char const> bytes) override {
    for (char const c : bytes) sum += static_cast<u8>(c);
    ++messages;
  }
  void on_data(u32, u32) override { ++writes; }
  void on_done(u64) override {}
  void on_lost(u32, std::string const&) override { lost = true; }
  u64 sum = 0;
  u32 messages = 0, writes = 0;
  bool lost = false;
};

// Ends the process if libfabric does not return, so that the test can say which bit did that.
class Limit {
 public:
  ~Limit() {
    {
      std::lock_guard const lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, most, [this] { return over_; })) return;
    test::say("libfabric did not return for " + std::to_string(most.count()) + " s");
    std::_Exit(2);
  }

  static constexpr auto most = 20s;  // the process lasts a second, and ctest waits for 60
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_{[this] { wait(); }};
};

Role const two_engines("two_engines", [] {
  Limit const limit;
  constexpr u32 count = 12;
  std::string memory(20'000, 'm'), source(20'000, 's'), text(600, 't');
  Reader seen[2];
  std::unique_ptr<net::Engine> engines[2];
  for (auto& one : engines) one = net::make_engine("ofi:tcp", "");
  engines[0]->connect({"", engines[1]->address()});
  engines[1]->connect({engines[0]->address(), ""});
  auto const target =
      engines[0]->import(1, engines[1]->expose(memory.data(), Bytes{memory.size()}));
  u32 sent[2] = {}, written = 0;
  auto const over = [&] {
    return seen[0].lost || seen[1].lost ||
           (seen[0].messages == count && seen[1].messages == count && seen[1].writes == count);
  };
  for (auto const until = Clock::now() + 700ms; !over() && Clock::now() < until;)
    for (u32 self = 0; self < 2; ++self) {
      if (sent[self] < count && engines[self]->send(1 - self, std::span(text).first(60), text, 1))
        ++sent[self];
      if (self == 0 && written < count && engines[0]->write(1, source, target, 0, written, 2))
        ++written;
      engines[self]->poll(seen[self]);
    }
  std::printf("%u and %u messages, %u writes\n", seen[0].messages, seen[1].messages,
              seen[1].writes);
});

// libfabric 1.17 puts 80 bytes before a message over tcp;ofi_rxm: 16 of tcp, which begin with the
// version 3, and 64 of rxm, which begin with the version 4. Each part has a size of 8 bytes. Later
// messages are changed in these alone.
bool is_no_size(std::string_view piece, u64 at) {
  for (u64 const size : {8, 56})
    for (u64 byte = 0; byte < 8; ++byte) {
      if (at < size + byte) continue;
      auto const header = piece.substr(at - size - byte);
      if (header.size() > 16 && header[0] == 3 && header[6] == 16 && header[16] == 4) return false;
    }
  return true;
}

// MESHPOST_TEST_ROUNDS: of four jobs each.
TEST(Headers, of_libfabric_that_are_changed_crash_no_process) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  char const* const wanted = std::getenv("MESHPOST_TEST_ROUNDS");
  u32 const rounds = wanted ? static_cast<u32>(std::stoul(wanted)) : 8;
  u32 crashes = 0;
  for (u32 round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<Troubles>> troubles;
    std::vector<std::unique_ptr<test::Job>> jobs;
    std::vector<std::string> traces;
    for (u32 i = 0; i < 4; ++i) {
      // The greeting of a connection has 48 bytes back, or 56 forth. Two messages follow it (of
      // Engine::poll and of the program), or a write. The third message begins at byte 900, or 908.
      Trouble trouble{.at_first = 256, .fault = Trouble::Fault::flip};
      trouble.at = 56 + random() % 840;
      trouble.bit = random() % 8;
      trouble.spares = test::harmful_to_libfabric(*trouble.bit);
      if (random() % 2) {
        trouble.at = (random() % 2 ? 908 : 956) + random() % 16;
        trouble.spares = &is_no_size;
      }
      trouble.forth = random() % 2 != 0;
      traces.push_back("bit " + std::to_string(*trouble.bit) + " of byte " +
                       std::to_string(trouble.at) + (trouble.forth ? " forth" : " back"));
      troubles.push_back(
          std::make_unique<Troubles>(random(), [trouble](auto const&, u32) { return trouble; }));
      jobs.push_back(std::make_unique<test::Job>(
          "two_engines", 1, test::Variables{{test::detour_variable, troubles.back()->address()}}));
    }
    for (u32 i = 0; i < 4; ++i)
      for (auto const& one : jobs[i]->wait())
        if (!one.well()) {
          ++crashes;
          ADD_FAILURE() << traces[i] << ": status " << one.status << " " << one.out;
        }
  }
  std::printf("%u crashes of %u\n", crashes, 4 * rounds);
}

}  // namespace
}  // namespace meshpost
