// Streams as endpoints: they put, notify and wait between devices, ranks, hosts and each other.
#include <meshpost/meshpost.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "support/errors.hpp"
#include "support/child.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost::stream_tests {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

enum class Reach { one_device, several_devices, apart };

// Memory of a device, for sources.
class Buffer {
 public:
  Buffer(Device& device, u64 count, MemoryKind kind = MemoryKind::device)
      : device_(device), memory_(device.allocate(Bytes{(count + 1) * sizeof(u32)}, kind)),
        count_(count) {}
  std::span<u32> span() const { return {memory_.as<u32>(), count_}; }
  void write(std::vector<u32> const& values) {
    device_.write(memory_.data(), values.data(), Bytes{values.size() * sizeof(u32)});
  }

 private:
  Device& device_;
  Allocation memory_;
  u64 count_;
};

std::vector<u32> numbers(u64 count, u64 seed) {
  std::vector<u32> values(count);
  for (u64 i = 0; i < count; ++i) values[i] = static_cast<u32>(test::mixed(seed, i));
  return values;
}

Launch with_host() {
  Launch launch;
  launch.with_host = true;
  return launch;
}

class Streams : public testing::TestWithParam<Reach> {
 protected:
  static WorldOptions options() {
    bool const one = GetParam() == Reach::one_device;
    auto wanted = test::options(
        1, test::devices(one ? test::Spread::one_device : test::Spread::several_devices));
    wanted.apart = GetParam() == Reach::apart;
    wanted.deadline = 10s;
    return wanted;
  }
  // The rank of the last device, which has a stream of its own there: the same device if there is
  // one.
  u32 last() const { return world_.size() - 1; }
  Device& device(u32 rank) const { return *world_.devices()[rank]; }

  World world_{options()};
  static constexpr u64 count = 1u << 20;
  Window<u32> box_ = world_.window<u32>(count, Tags{8}, "box");
  StreamEndpoint a_{world_, 0, "a"}, b_{world_, last(), "b"};
};

std::string reach_name(testing::TestParamInfo<Reach> const& info) {
  constexpr std::array names{"one_device", "several_devices", "apart"};
  return names[static_cast<u32>(info.param)];
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
  std::mt19937 random(static_cast<u32>(std::chrono::steady_clock::now().time_since_epoch().count()));
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
    box_.read(RankId{last()}, offset, got);
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

// -- failures

TEST_P(Streams, end_a_wait_that_nobody_answers) {
  auto wanted = options();
  wanted.deadline = 200ms;
  World world(wanted);
  auto const box = world.window<u32>(4, Tags{4}, "mail");
  StreamEndpoint one(world, 0, "one");
  box.notify(one.id(), Tag{1});
  one.wait(box, {{Tag{1}, 1}, {Tag{3}, 2}});
  one.notify(box, world.host(), Tag{0});  // is never done
  auto const error = error_of([&] { one.synchronize(); });
  EXPECT_TRUE(says(error, Kind::deadline,
                   {"wait, stream 'one' of", "window 'mail'", "0 of 2", "tag 3", "0.2 s"}));
  auto const none = error_of([&] { box.wait(Tag{0}, 1, 20ms); });
  EXPECT_TRUE(says(none, Kind::deadline, {"0 of 1"}));
  // It goes on, and what came before is forgotten.
  one.wait(box, Tag{1});
  auto const again = error_of([&] { one.synchronize(); });
  EXPECT_TRUE(says(again, Kind::deadline, {"tag 1", "0 of 1"}));
  box.notify(one.id(), Tag{1});
  one.wait(box, Tag{1});
  one.notify(box, world.host(), Tag{0});
  one.synchronize();
  box.wait(Tag{0});
}

TEST_P(Streams, say_an_error_at_the_next_call) {
  auto wanted = options();
  wanted.deadline = 100ms;
  World world(wanted);
  auto const box = world.window<u32>(4, Tags{4}, "mail");
  StreamEndpoint one(world);
  one.wait(box, Tag{1});
  std::this_thread::sleep_for(600ms);
  auto const error = error_of([&] { one.notify(box, one.id(), Tag{1}); });
  EXPECT_TRUE(says(error, Kind::deadline, {"wait, stream 0 of", "tag 1"}));
  EXPECT_THROW(one.synchronize(), Error);
  one.synchronize();
}

// Each of many waits is shorter than the deadline; together they are longer.
TEST_P(Streams, count_a_deadline_for_each_wait) {
  auto wanted = options();
  wanted.deadline = test::sanitized ? 1500ms : 300ms;
  World world(wanted);
  auto const box = world.window<u32>(4, Tags{4}, "mail");
  StreamEndpoint one(world);
  for (u32 i = 0; i < 6; ++i) one.wait(box, Tag{1});
  for (u32 i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(wanted.deadline / 3);
    box.notify(one.id(), Tag{1});
  }
  one.synchronize();
}

struct Fail {
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.fail("no");
  }
};

TEST_P(Streams, hear_of_a_run_that_fails_while_they_wait) {
  b_.wait(box_, Tag{1});
  std::this_thread::sleep_for(50ms);  // so long that it has told the host
  EXPECT_THROW(world_.run(Fail{}), Error);
  auto const error = error_of([&] { b_.synchronize(); });
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"window 'box'", "0 of 1", "a run failed", "no"}));
  a_.notify(box_, b_.id(), Tag{1});
  b_.wait(box_, Tag{1});
  a_.synchronize();
  b_.synchronize();
}

TEST_P(Streams, have_their_work_done_before_a_window_is_freed) {
  auto const box = world_.window<u32>(1000, Tags{1}, "short lived");
  Buffer source(device(0), 1000);
  source.write(numbers(1000, 3));
  std::thread late([&] {
    std::this_thread::sleep_for(50ms);
    box_.notify(a_.id(), Tag{0});
  });
  a_.wait(box_, Tag{0});
  a_.put_notify(box.at(RankId{last()}), source.span(), b_.id(), Tag{0});
  b_.wait(box, Tag{0});
  world_.free(box);
  EXPECT_TRUE(b_.stream().record()->done() || GetParam() != Reach::one_device);
  late.join();
  auto const error = error_of([&] { a_.notify(box, b_.id(), Tag{0}); });
  EXPECT_TRUE(says(error, Kind::bad_argument, {"notify", "'short lived' was freed before"}));
}

TEST_P(Streams, have_their_work_done_before_their_world_ends) {
  std::optional<World> world(options());
  auto const box = world->window<u32>(1, Tags{1}, "box");
  std::optional<StreamEndpoint> one(std::in_place, *world, 0);
  StreamEndpoint moved = std::move(*one);
  one.reset();
  auto const id = moved.id();
  std::thread late([&] {
    std::this_thread::sleep_for(50ms);
    box.notify(id, Tag{0});
  });
  moved.wait(box, Tag{0});
  // What the stream does now can be seen outside of the World.
  auto const word = device(0).allocate(Bytes{4}, MemoryKind::pinned);
  *word.as<u32>() = 0;
  moved.stream().store(word.as<u32>(), 1);
  late.join();
  world.reset();
  EXPECT_EQ(*word.as<u32>(), 1u);
  auto const error = error_of([&] { moved.synchronize(); });
  EXPECT_TRUE(says(error, Kind::misuse, {"synchronize", "does not exist any more"}));
  auto const other = error_of([&] { box.notify(id, Tag{0}); });
  EXPECT_TRUE(says(other, Kind::misuse, {"does not exist (any more)"}));
}

TEST_P(Streams, refuse_wrong_arguments) {
  Buffer source(device(0), 10);
  auto const ten = source.span();
  auto const said_by = [&](std::function<void()> const& work, Kind kind,
                           std::initializer_list<std::string_view> pieces) {
    auto const error = error_of(work);
    EXPECT_TRUE(says(error, kind, pieces));
  };
  constexpr auto bad = Kind::bad_argument;
  said_by([&] { a_.notify(box_, RankId{9}, Tag{0}); }, bad, {"notify, window 'box'", "rank 9"});
  said_by([&] { a_.notify(box_, RankId{0}, Tag{8}); }, bad, {"notify, window 'box'", "tag 8", "8"});
  said_by([&] { a_.notify(box_, StreamId{9, 0}, Tag{0}); }, bad, {"device 9"});
  said_by([&] { a_.notify(box_, StreamId{0, 8}, Tag{0}); }, bad, {"0 to 7", "8"});
  said_by([&] { a_.notify(box_, StreamId{0, 0}, Tag{70}); }, bad, {"tag 70"});
  said_by([&] { a_.notify(box_, HostId{}, Tag{0}); }, bad, {"HostId::device is -1"});
  said_by([&] { a_.put(box_.at(RankId{9}), ten); }, bad, {"put, window 'box'", "rank 9"});
  said_by([&] { a_.put(box_.at(RankId{0}, count - 3), ten); }, bad,
          {"elements 1048573 to 1048583 of rank 0", "1048576"});
  said_by([&] { a_.put(box_.at(RankId{0}).subspan(2, 5), ten); }, bad,
          {"10 elements were given where 5 fit"});
  said_by([&] { a_.put(box_.at(RankId{0}).subspan(2, 5).subspan(4, 5), ten); }, bad,
          {"leaves its span"});
  said_by([&] { a_.put(box_.at(RankId{0}), std::span<u32>(static_cast<u32*>(nullptr), 3)); }, bad,
          {"put, stream 'a' of", "3 elements", "null"});
  said_by([&] { a_.put_notify(box_.at(RankId{0}), ten, Tag{9}); }, bad, {"put_notify", "tag 9"});
  if (world_.size() > 1)
    said_by([&] { a_.put_notify(box_.at(RankId{0}), ten, b_.id(), Tag{0}); }, bad,
            {"the target is on " + device(0).name(), "notified on " + device(last()).name()});
  said_by([&] { a_.wait(box_, Tag{8}); }, bad, {"wait, window 'box'", "tag 8"});
  said_by([&] { a_.wait(box_, Tag{0}, (1u << 30) + 1); }, bad, {"1073741825", "1073741824"});
  auto const many = world_.window<u32>(0, Tags{40}, "many");
  std::vector<Counts> all;
  for (u32 tag = 0; tag < 33; ++tag) all.push_back({Tag{tag}});
  said_by([&] { a_.wait(many, all); }, bad, {"33 tags", "32"});
  said_by([&] { a_.notify(Window<u32>{}, RankId{0}, Tag{0}); }, bad, {"window 0 of world 0"});
  World other(options());
  auto const foreign = other.window<u32>(1, Tags{1}, "foreign");
  said_by([&] { a_.notify(foreign, RankId{0}, Tag{0}); }, bad, {"with the World that made them"});
  said_by([&] { StreamEndpoint(world_, 9); }, bad, {"device 9 was named"});
  std::vector<StreamEndpoint> most;
  while (most.size() + b_.id().number < StreamId::most - 1) most.emplace_back(world_, last());
  said_by([&] { StreamEndpoint(world_, last()); }, bad, {"has 8 streams", "the most"});
  // All that was refused has done nothing.
  most.clear();
  a_.notify(box_, b_.id(), Tag{0});
  b_.wait(box_, Tag{0});
  a_.synchronize();
  b_.synchronize();
  if (!test::on_gpus()) {
    said_by([&] { StreamEndpoint(world_, 0, static_cast<void*>(nullptr)); }, bad,
            {"CPU devices have no streams"});
    return;
  }
  std::vector<u32> pageable(10);
  said_by([&] { a_.put(box_.at(RankId{0}), std::span<u32>(pageable)); }, bad,
          {"memory that " + device(0).name() + " can't read"});
  said_by([&] { a_.put(box_.at(RankId{0}), std::span<u32>(ten.data(), count)); }, bad,
          {"put, stream 'a' of", "4194304 bytes were named", "its allocation ends after 44"});
}

TEST_P(Streams, are_refused_where_host_calls_are) {
  auto const status = test::status_in_child([&] { a_.notify(box_, b_.id(), Tag{0}); });
  EXPECT_EQ(status, 100);
  auto const of_wait = test::status_in_child([&] { b_.wait(box_, Tag{0}); });
  EXPECT_EQ(of_wait, 100);
}

struct NotifyStream {
  Window<u32> box;
  StreamId stream;
  u32 tag;
  MESHPOST_FN void operator()(Rank& self) const { self.notify(box, stream, Tag{tag}); }
};

TEST_P(Streams, are_checked_in_kernels_too) {
  auto const by = [&](StreamId stream, u32 tag) {
    return error_of([&] { world_.run(NotifyStream{box_, stream, tag}); });
  };
  EXPECT_TRUE(says(by({77, 0}, 0), Kind::kernel_failed, {"StreamId::device is 77"}));
  EXPECT_TRUE(says(by({0, 9}, 0), Kind::kernel_failed, {"StreamId::number is 9", "0 to 7"}));
  EXPECT_TRUE(says(by({0, 0}, 9), Kind::kernel_failed, {"tag 9"}));
  world_.run(NotifyStream{box_, b_.id(), 1});
  b_.wait(box_, Tag{1}, world_.size());
  b_.synchronize();
}

INSTANTIATE_TEST_SUITE_P(Reaches, Streams,
                         testing::Values(Reach::one_device, Reach::several_devices, Reach::apart),
                         reach_name);

}  // namespace
}  // namespace meshpost::stream_tests
