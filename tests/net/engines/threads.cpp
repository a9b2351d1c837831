// Engines of several threads, like those of several processes: each thread polls its own.
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "net/engines/group.hpp"

namespace meshpost::net::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto timeout = std::chrono::seconds(30);  // with an engine that reports nothing

class Threads : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Each, Threads, testing::ValuesIn(variants()), name_of);

// Four threads. Each sends and writes to the others as fast as the engine allows, and counts.
TEST_P(Threads, talk_both_ways_at_once) {
  constexpr u32 count = 4;
  u64 const each = GetParam().each;
  u64 const writes_each = each / 5;  // one behind the other, each a round trip or two
  Group four(count, GetParam());
  struct Window {
    alignas(64) std::array<std::array<u64, 512>, count> from{};
  };
  std::vector<Window> windows(count);
  std::vector<std::vector<RemoteMemory>> memory(count, std::vector<RemoteMemory>(count));
  for (u32 to = 0; to < count; ++to) {
    auto const exposed = four.engines[to]->expose(&windows[to], Bytes{sizeof(Window)});
    for (u32 from = 0; from < count; ++from)
      if (from != to) memory[from][to] = four.engines[from]->import(to, exposed);
  }
  std::atomic<u32> over{0};
  std::vector<std::string> failures(count);
  auto const talk = [&](u32 self) {
    auto& engine = *four.engines[self];
    auto& seen = four.seen[self];
    std::mt19937_64 random(self);
    std::vector<std::array<u64, 512>> sources(count);
    std::vector<bool> writing(count);
    std::vector<u64> writes(count), messages(count), heard(count), told(count);
    u64 done = 0, data = 0;
    auto last_event = Clock::now();
    auto const all = (count - 1) * each, all_writes = (count - 1) * writes_each;
    auto const fail = [&](std::string const& why) { failures[self] = why; };
    bool said = false;
    while (over < count && failures[self].empty()) {
      u32 const to = static_cast<u32>((self + 1 + random() % (count - 1)) % count);
      if (messages[to] < each && engine.send(to, std::to_string(messages[to]), {}, count))
        ++messages[to];
      if (writes[to] < writes_each && !writing[to]) {
        // One write at a time to each, so that the bytes of two never mix.
        sources[to].fill(writes[to] + 1);
        if (engine.write(
                to, {reinterpret_cast<char const*>(sources[to].data()), sizeof sources[to]},
                memory[self][to], self * sizeof sources[to], static_cast<u32>(writes[to]), to)) {
          ++writes[to];
          writing[to] = true;
        }
      }
      engine.poll(seen);
      if (!seen.messages.empty() || !seen.data.empty() || !seen.done.empty()) {
        last_event = Clock::now();
      } else if (!said && Clock::now() - last_event > timeout) {
        return fail("nothing happens any more: " + std::to_string(data) + " data, " +
                    std::to_string(done) + " done");
      } else {
        std::this_thread::yield();  // there may be fewer cores than threads
      }
      for (auto const& [from, text] : seen.messages) heard[from]++;
      for (auto const& [from, value] : seen.data) {
        ++told[from], ++data;
        // The next write may already be arriving, in part or whole.
        if (std::ranges::min(windows[self].from[from]) < value + 1)
          return fail("bytes came after their data");
      }
      for (auto const cookie : seen.done) {
        ++done;
        if (cookie < count) writing[cookie] = false;
      }
      if (!seen.lost.empty()) return fail(seen.lost[0].second);
      seen = {};
      u64 received = 0;
      for (auto const n : heard) received += n;
      if (!said && received == all && data == all_writes && done == all + all_writes)
        said = true, ++over;
      if (received > all || data > all_writes || done > all + all_writes)
        return fail("something came twice");
    }
  };
  std::vector<std::jthread> threads;
  for (u32 self = 0; self < count; ++self)
    threads.emplace_back([&, self] {
      talk(self);
      if (!failures[self].empty()) over = count;
    });
  threads.clear();
  for (auto const& why : failures) EXPECT_EQ(why, "");
}

}  // namespace
}  // namespace meshpost::net::test
