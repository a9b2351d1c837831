// Messages and writes between engines of one process, with every variant.
#include <algorithm>
#include <set>

#include "net/engines/group.hpp"
#include "support/bytes.hpp"
#include "support/sanitized.hpp"

namespace meshpost::net::test {
namespace {

class Exchange : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Each, Exchange, testing::ValuesIn(variants()), name_of);

TEST_P(Exchange, messages_of_every_size_arrive_whole) {
  Group two(2, GetParam());
  u64 const most = two.engines[0]->most();
  ASSERT_GE(most, 4096u);
  std::mt19937_64 random(1);
  std::vector<u64> sizes;
  for (u64 size = 0; size < 300; ++size) sizes.push_back(size);
  for (u64 size = 300; size < most; size += 977) sizes.push_back(size);
  for (u64 size = most - 50; size <= most; ++size) sizes.push_back(size);
  for (auto const size : sizes) {
    auto const bytes = meshpost::test::random_data<std::string>(random, size);
    u64 const header = random() % (std::min<u64>(size, 64) + 1);
    ASSERT_TRUE(two.retry([&] {
      return two.engines[0]->send(1, {bytes.data(), header}, {bytes.data() + header, size - header},
                                  size);
    })) << size;
    ASSERT_TRUE(two.until([&] { return !two.seen[1].messages.empty(); })) << size;
    ASSERT_EQ(two.seen[1].messages.size(), 1u);
    ASSERT_EQ(two.seen[1].messages[0].first, 0u);
    ASSERT_EQ(two.seen[1].messages[0].second, bytes) << size;
    two.seen[1].messages.clear();
  }
  EXPECT_TRUE(two.until([&] { return two.seen[0].done.size() == sizes.size(); }));
}

TEST_P(Exchange, the_header_is_copied) {
  Group two(2, GetParam());
  std::string header = "first", const_payload = "payload";
  ASSERT_TRUE(two.retry([&] {
    bool const sent = two.engines[0]->send(1, header, const_payload, 0);
    if (sent) header = "wrong";
    return sent;
  }));
  ASSERT_TRUE(two.until([&] { return !two.seen[1].messages.empty(); }));
  EXPECT_EQ(two.seen[1].messages[0].second, "firstpayload");
}

TEST_P(Exchange, writes_are_there_when_their_data_is_told) {
  Group two(2, GetParam());
  constexpr u64 most = u64{meshpost::test::sanitized ? 9 : 64} << 20,
                window = most + (u64{1} << 20);
  std::string target(window, 'x');
  auto const exposed = two.engines[1]->expose(target.data(), Bytes{window});
  auto const memory = two.engines[0]->import(1, exposed);
  std::mt19937_64 random(2);
  u32 number = 0;
  for (u64 const size : {u64{0}, u64{1}, u64{8}, u64{63}, u64{4096}, u64{16384}, u64{16385},
                         u64{99'999}, u64{100'001}, u64{1} << 20, u64{8} << 20, most}) {
    auto const source = meshpost::test::random_data<std::string>(random, size);
    u64 const offset = random() % (window - size);
    u32 const data = 0xffff'0000u + ++number;
    ASSERT_TRUE(
        two.retry([&] { return two.engines[0]->write(1, source, memory, offset, data, number); }));
    ASSERT_TRUE(two.until([&] { return !two.seen[1].data.empty(); })) << size;
    ASSERT_EQ(two.seen[1].data, (std::vector{std::pair{u32{0}, data}}));
    ASSERT_EQ(target.compare(offset, size, source), 0) << size;
    ASSERT_TRUE(two.until([&] { return !two.seen[0].done.empty(); }));
    EXPECT_EQ(two.seen[0].done, std::vector<u64>{number});
    two.seen[0].done.clear(), two.seen[1].data.clear();
  }
}

// Each of four engines sends to the others and writes to them, in a random order by seed, as much
// as the queues take. Every operation is checked where it arrives.
TEST_P(Exchange, nothing_is_lost_and_nothing_comes_twice) {
  constexpr u32 count = 4;
  u64 const operations = GetParam().operations;
  Group four(count, GetParam());
  constexpr u64 slot = 512, slots = 64;  // for each pair
  std::vector<std::string> windows(count, std::string(count * slots * slot, '\0'));
  std::vector<std::vector<RemoteMemory>> memory(count, std::vector<RemoteMemory>(count));
  for (u32 to = 0; to < count; ++to) {
    auto const exposed = four.engines[to]->expose(windows[to].data(), Bytes{windows[to].size()});
    for (u32 from = 0; from < count; ++from)
      if (from != to) memory[from][to] = four.engines[from]->import(to, exposed);
  }
  struct Sent {
    std::vector<std::string> writes =
        std::vector<std::string>(slots);  // by slot: the write in progress
    std::set<std::string> messages;
  };
  std::vector<std::vector<Sent>> sent(count, std::vector<Sent>(count));
  std::mt19937_64 random(3);
  std::vector<u64> ended(count), next(count);
  u64 received = 0;
  auto const check = [&] {
    four.poll();
    for (u32 at = 0; at < count; ++at) {
      for (auto const& [from, bytes] : four.seen[at].messages) {
        ASSERT_EQ(sent[from][at].messages.erase(bytes), 1u);
        ++received;
      }
      for (auto const& [from, s] : four.seen[at].data) {
        ASSERT_LT(s, slots);
        auto& pending = sent[from][at];
        ASSERT_FALSE(pending.writes[s].empty());
        ASSERT_EQ(windows[at].compare((from * slots + s) * slot, pending.writes[s].size(),
                                      pending.writes[s]),
                  0);
        ++received;
        pending.writes[s].clear();
      }
      for (auto const cookie : four.seen[at].done) {
        ASSERT_LT(cookie, next[at]);
        ++ended[at];
      }
      ASSERT_TRUE(four.seen[at].lost.empty()) << four.seen[at].lost[0].second;
      four.seen[at] = {};
    }
  };
  // The source of a write must stay until the write is done.
  std::vector<std::string> sources;
  sources.reserve(count * operations);
  for (u64 i = 0; i < count * operations && !HasFatalFailure();) {
    u32 const from = static_cast<u32>(random() % count);
    u32 const to = static_cast<u32>((from + 1 + random() % (count - 1)) % count);
    auto& pair = sent[from][to];
    bool began = false;
    if (random() % 2) {
      auto bytes = std::to_string(100000 + i) + " " + std::string(random() % 300, 'm');
      began =
          four.engines[from]->send(to, {bytes.data(), 4}, std::span(bytes).subspan(4), next[from]);
      if (began) pair.messages.insert(bytes);
    } else {
      u32 const s = static_cast<u32>(random() % slots);
      if (pair.writes[s].empty()) {
        sources.push_back(std::to_string(i) + " " + std::string(random() % 480, 'w'));
        began = four.engines[from]->write(to, sources.back(), memory[from][to],
                                          (from * slots + s) * slot, s, next[from]);
        if (began) pair.writes[s] = sources.back();
        else sources.pop_back();
      }
    }
    if (began) ++i, ++next[from];
    if (!began || random() % 16 == 0) check();
  }
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  auto const all = [&] {
    u64 done = 0;
    for (u32 i = 0; i < count; ++i) done += ended[i];
    return received == count * operations && done == count * operations;
  };
  while (!all() && !HasFatalFailure() && std::chrono::steady_clock::now() < end) check();
  EXPECT_TRUE(all()) << received << " of " << count * operations;
  for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) check();
  EXPECT_TRUE(all()) << "something came twice";
}

TEST_P(Exchange, full_queues_refuse_and_go_on_after_polls) {
  Group two(2, GetParam());
  std::string const payload(1000, 'p');
  ASSERT_TRUE(two.retry([&] { return two.engines[0]->send(1, {}, payload, 0); }));
  u64 sent = 1;
  while (sent < 100'000 && two.engines[0]->send(1, {}, payload, sent)) ++sent;
  EXPECT_LT(sent, 100'000u) << "never refused";
  ASSERT_TRUE(two.retry([&] { return two.engines[0]->send(1, {}, payload, sent); }));
  ++sent;
  ASSERT_TRUE(two.until(
      [&] { return two.seen[1].messages.size() >= sent && two.seen[0].done.size() >= sent; }));
  EXPECT_EQ(two.seen[1].messages.size(), sent);
}

}  // namespace
}  // namespace meshpost::net::test
