// Streams as endpoints: they put, notify and wait between devices, ranks, hosts and each other.
#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "on_stream/two_streams.hpp"
#include "support/errors.hpp"
#include "support/sink.hpp"

namespace meshpost::stream_tests {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::error_of;
using test::numbers;
using test::Reach;
using test::says;

class Streams : public test::TwoStreams {};

Launch with_host() {
  Launch launch;
  launch.with_host = true;
  return launch;
}

TEST_P(Streams, know_their_ids_by_order) {
  EXPECT_EQ(a_.id().device, 0u);
  EXPECT_EQ(a_.id().number, 0u);
  EXPECT_EQ(b_.id().device, last());
  EXPECT_EQ(b_.id().number, GetParam() == Reach::one_device ? 1u : 0u);
  u32 const next = b_.id().number + 1;
  {
    StreamEndpoint const third(world_, last());
    EXPECT_EQ(third.id().number, next);
  }
  EXPECT_EQ(StreamEndpoint(world_, last()).id().number, next);
}

// Any size, in order; what was there before is poisoned.
TEST_P(Streams, bring_bytes_of_any_size_before_their_notification) {
  std::mt19937 random(
      static_cast<u32>(std::chrono::steady_clock::now().time_since_epoch().count()));
  SCOPED_TRACE(testing::Message() << "seed of the state: " << random());
  Buffer source(device(0), count);
  for (u64 const elements : {0ull, 1ull, 2ull, 3ull, 255ull, 257ull, 4096ull, 8193ull, 66000ull,
                             300'001ull, static_cast<unsigned long long>(count)}) {
    auto const values = numbers(elements, random());
    u64 const offset = elements == count ? 0 : random() % 7;
    std::vector<u32> const poison(count, 0xdeadbeef);
    box_.write(RankId{last()}, 0, poison);
    source.write(values);
    a_.put_notify(box_.at(RankId{last()}, offset), source.span().first(elements), b_.id(), Tag{3});
    b_.wait(box_, Tag{3});
    std::vector<u32> got(elements);
    a_.synchronize();
    b_.synchronize();
    device(last()).read(got.data(), box_.part(RankId{last()}).data() + offset,
                        Bytes{elements * sizeof(u32)});
    EXPECT_TRUE(std::equal(values.begin(), values.end(), got.begin())) << elements;
    if (offset + elements < count) {
      u32 after = 0;
      box_.read(RankId{last()}, offset + elements, std::span(&after, 1));
      EXPECT_EQ(after, 0xdeadbeefu) << elements;
    }
  }
}

// Each round a number goes there and comes back, plus work of the streams between them.
TEST_P(Streams, answer_each_other_many_times_without_their_host) {
  u32 const rounds = GetParam() == Reach::apart ? 20 : 300;
  auto const mine = world_.window<u32>(2, Tags{2}, "mine");
  Buffer ones(device(0), 1);
  ones.write({41});
  for (u32 i = 0; i < rounds; ++i) {
    a_.put_notify(mine.at(RankId{last()}), ones.span(), b_.id(), Tag{0});
    b_.wait(mine, Tag{0});
    b_.notify(mine, a_.id(), Tag{1});
    a_.wait(mine, Tag{1});
  }
  a_.synchronize();
  b_.synchronize();
  EXPECT_EQ(mine.read(RankId{last()})[0], 41u);
}

TEST_P(Streams, may_both_send_first) {
  Buffer from_a(device(0), 1000), from_b(device(last()), 1000);
  auto const in_a = world_.window<u32>(1000, Tags{2}, "in a"),
             in_b = world_.window<u32>(1000, Tags{2}, "in b");
  from_a.write(numbers(1000, 1));
  from_b.write(numbers(1000, 2));
  for (u32 i = 0; i < 10; ++i) {
    a_.put_notify(in_b.at(RankId{last()}), from_a.span(), b_.id(), Tag{0});
    b_.put_notify(in_a.at(RankId{0}), from_b.span(), a_.id(), Tag{1});
    a_.wait(in_a, Tag{1});
    b_.wait(in_b, Tag{0});
  }
  a_.synchronize();
  b_.synchronize();
  EXPECT_EQ(in_b.read(RankId{last()}), numbers(1000, 1));
  EXPECT_EQ(in_a.read(RankId{0}), numbers(1000, 2));
}

TEST_P(Streams, reach_many_places_and_tags) {
  Buffer source(device(0), 1);
  source.write({77});
  constexpr u32 places = 40;
  for (u32 i = 0; i < places; ++i)
    a_.put_notify(box_.at(RankId{last()}, u64{3} * i), source.span(), b_.id(), Tag{i % 8});
  for (u32 i = 0; i < places; ++i) b_.wait(box_, Tag{i % 8});
  a_.synchronize();
  b_.synchronize();
  auto const got = box_.read(RankId{last()});
  for (u32 i = 0; i < places; ++i) EXPECT_EQ(got[u64{3} * i], 77u) << i;
}

TEST_P(Streams, wait_for_several_tags_at_once) {
  for (u32 i = 0; i < 3; ++i) a_.notify(box_, b_.id(), Tag{1});
  b_.wait(box_, {{Tag{1}, 2}, {Tag{4}, 1}, {Tag{1}, 1}, {Tag{5}, 0}});  // three of tag 1
  auto const done = b_.stream().record();
  a_.synchronize();
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(done->done());
  box_.notify(b_.id(), Tag{4});  // the host
  b_.synchronize();
  b_.wait(box_, std::vector<Counts>{});
  b_.synchronize();
}

// More than any queue holds.
TEST_P(Streams, take_thousands_of_operations) {
  u32 const operations = GetParam() == Reach::apart ? 200 : 5000;
  auto const words = world_.window<u32>(2, Tags{1}, "words");
  Buffer source(device(0), 2);
  source.write({5, 6});
  std::thread other([&] {
    for (u32 i = 0; i < operations; ++i) b_.wait(words, Tag{0});
    b_.synchronize();
  });
  for (u32 i = 0; i < operations; ++i)
    a_.put_notify(words.at(RankId{last()}), source.span(), b_.id(), Tag{0});
  a_.synchronize();
  other.join();
  EXPECT_EQ(words.read(RankId{last()}), (std::vector<u32>{5, 6}));
}

TEST_P(Streams, read_how_much_to_send_when_they_get_there) {
  auto const box = world_.window<u32>(100, Tags{1}, "counted");
  Buffer source(device(0), 100);
  source.write(numbers(100, 9));
  auto const size = device(0).allocate(Bytes{sizeof(u64)}, MemoryKind::pinned);
  for (u64 const given : {0ull, 1ull, 63ull, 100ull, 1000ull}) {
    box.write(RankId{last()}, 0, std::vector<u32>(100, 7));
    *size.as<u64>() = given;
    a_.put_notify(box.at(RankId{last()}), CountedSource<u32>{source.span(), size.as<u64>()},
                  b_.id(), Tag{0});
    b_.wait(box, Tag{0});
    a_.synchronize();
    b_.synchronize();
    auto expected = numbers(100, 9);
    std::fill(expected.begin() + static_cast<i64>(std::min<u64>(given, 100)), expected.end(), 7);
    EXPECT_EQ(box.read(RankId{last()}), expected) << given;
  }
}

struct Double {
  Window<u32> box;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = box.local(self);
    for (u64 i = self.thread(); i < mine.size(); i += self.threads()) mine[i] *= 2;
    self.barrier();  // else the put below could come before
    u32 const next = (self.id() + 1) % self.size();
    self.put_notify(box.at(RankId{next}, 0), mine.subspan(1, 1), Tag{1});
    self.wait(box, Tag{1});
  }
};

// Memory of the host that the devices use in place.
TEST_P(Streams, use_windows_and_sources_in_pinned_memory) {
  std::vector<Allocation> memory;
  std::vector<std::span<u32>> parts;
  for (u32 rank = 0; rank < world_.size(); ++rank) {
    memory.push_back(device(rank).allocate(Bytes{400}, MemoryKind::pinned));
    parts.emplace_back(memory.back().as<u32>(), 100);
    std::ranges::fill(parts.back(), 1000 + rank);
  }
  auto const box = world_.register_memory(parts, Tags{2}, "pinned");
  Buffer source(device(0), 50, MemoryKind::pinned);
  std::ranges::copy(numbers(50, 6), source.span().begin());
  a_.put_notify(box.at(RankId{last()}, 30), source.span(), b_.id(), Tag{0});
  b_.wait(box, Tag{0});
  a_.synchronize();
  b_.synchronize();
  auto const got = parts[last()];  // the host reads in place
  EXPECT_EQ(got[29], 1000 + last());
  EXPECT_TRUE(std::ranges::equal(got.subspan(30, 50), numbers(50, 6)));
  EXPECT_EQ(got[80], 1000 + last());
  world_.run(Double{box});
  EXPECT_EQ(got[30], 2 * numbers(50, 6)[0]);
  EXPECT_EQ(got[0], 2 * (1000 + (world_.size() + last() - 1) % world_.size()));
  EXPECT_EQ(box.read(RankId{last()})[79], got[79]);
  world_.free(box);
}

// -- ranks and hosts

struct AnswerStream {
  Window<u32> box;
  StreamId stream;
  u32 times;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() + 1 != self.size()) return;
    auto const mine = box.local(self);
    for (u32 i = 0; i < times; ++i) {
      self.wait(box, Tag{0});
      self.sync();
      if (self.thread() == 0) mine[1] = mine[0] + 1;
      self.sync();
      self.put(box.at(RankId{0}, 2), mine.subspan(1, 1));
      self.notify(box, stream, Tag{1});
    }
  }
};

TEST_P(Streams, and_a_running_kernel_notify_each_other) {
  u32 const rounds = 20;
  Buffer source(device(0), rounds);
  auto const values = numbers(rounds, 4);
  source.write(values);
  auto run = world_.launch(AnswerStream{box_, a_.id(), rounds}, with_host());
  for (u32 i = 0; i < rounds; ++i) {
    a_.put_notify(box_.at(RankId{last()}), source.span().subspan(i, 1), Tag{0});
    a_.wait(box_, Tag{1});
    if (i % 7 != 0) continue;
    a_.synchronize();
    u32 got = 0;
    box_.read(RankId{0}, 2, std::span(&got, 1));
    EXPECT_EQ(got, values[i] + 1);
  }
  EXPECT_TRUE(run.wait().unconsumed.empty());
  a_.synchronize();
}

// On GPUs the thread stays inside the copy, and the driver then lets no other copy to such memory
// begin.
TEST_P(Streams, let_the_host_write_while_a_thread_is_in_a_copy_behind_a_wait) {
  auto const values = numbers(1000, 5);
  std::vector<u32> copied(values.size()), read(values.size());
  a_.wait(box_, Tag{0});
  std::thread copies([&] {
    a_.stream().copy(copied.data(), box_.part(RankId{0}).data(),
                     Bytes{copied.size() * sizeof(u32)});
  });
  std::this_thread::sleep_for(50ms);
  box_.write(RankId{0}, 0, std::span(values));
  box_.read(RankId{0}, 0, std::span(read));
  EXPECT_EQ(read, values);
  box_.notify(a_.id(), Tag{0});
  copies.join();
  a_.synchronize();
  EXPECT_EQ(copied, values);
}

struct Consume {
  Window<u32> box;
  u32 count;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() + 1 == self.size()) self.wait(box, Tag{0}, count);
  }
};
struct Nothing {
  MESHPOST_FN void operator()(Rank&) const {}
};

TEST_P(Streams, notify_the_run_that_follows) {
  Launch behind;
  behind.streams = {&a_.stream()};
  for (u32 i = 0; i < 5; ++i) {
    for (u32 k = 0; k < 3; ++k) a_.notify(box_, RankId{last()}, Tag{0});
    auto run = world_.launch(Consume{box_, 3}, behind);
    a_.notify(box_, RankId{last()}, Tag{0});  // behind it
    EXPECT_TRUE(run.wait().unconsumed.empty());
    a_.synchronize();
    EXPECT_TRUE(world_.run(Consume{box_, 1}).unconsumed.empty());
    a_.notify(box_, RankId{last()}, Tag{0});
    world_.launch(Consume{box_, 1}, behind);
    world_.run(Nothing{});
    a_.notify(box_, RankId{last()}, Tag{0});  // behind both, without a wait by the host
    EXPECT_TRUE(world_.launch(Consume{box_, 1}, behind).wait().unconsumed.empty());
  }
}

TEST_P(Streams, are_named_where_nobody_consumed_what_they_sent) {
  test::Listener const listener;
  a_.notify(box_, RankId{last()}, Tag{6});
  a_.synchronize();
  auto const result = world_.run(Nothing{});
  ASSERT_EQ(result.unconsumed.size(), 1u);
  EXPECT_EQ(result.unconsumed.front().tag.value, 6u);
  EXPECT_NE(listener.warnings().front().find("the last from stream 0 of " + device(0).name()),
            std::string::npos)
      << listener.warnings().front();
}

TEST_P(Streams, and_the_host_notify_each_other) {
  for (u32 i = 0; i < 10; ++i) {
    u32 const value = 100 + i;
    box_.write(RankId{last()}, 5, std::span(&value, 1));
    box_.notify(b_.id(), Tag{2});
    b_.wait(box_, Tag{2});
    b_.notify(box_, world_.host(), Tag{2});
    box_.wait(Tag{2});
  }
  b_.synchronize();
  auto const error = error_of([&] { box_.wait(Tag{2}, 1, 20ms); });
  EXPECT_TRUE(says(error, Kind::deadline, {"0 of 1"}));
}

TEST_P(Streams, order_runs_by_launch_streams) {
  Launch behind;
  behind.streams = {&a_.stream()};
  auto const box = world_.window<u32>(1, Tags{1}, "box");
  for (u32 i = 0; i < 5; ++i) {
    a_.notify(box, RankId{last()}, Tag{0});
    world_.launch(Consume{box, 1}, behind);
    a_.notify(box, b_.id(), Tag{0});
    b_.wait(box, Tag{0});
  }
  b_.synchronize();
}

INSTANTIATE_TEST_SUITE_P(Reaches, Streams, test::all_reaches(), test::reach_name);

}  // namespace
}  // namespace meshpost::stream_tests
