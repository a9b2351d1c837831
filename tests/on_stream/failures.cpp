// Failures and misuse of streams, and their ends.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "on_stream/two_streams.hpp"
#include "support/child.hpp"
#include "support/errors.hpp"

namespace meshpost::stream_failure_tests {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::error_of;
using test::numbers;
using test::Reach;
using test::says;

class StreamFailures : public test::TwoStreams {};

TEST_P(StreamFailures, end_a_wait_that_nobody_answers) {
  World world(options(200ms));
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

TEST_P(StreamFailures, say_an_error_at_the_next_call) {
  World world(options(100ms));
  auto const box = world.window<u32>(4, Tags{4}, "mail");
  StreamEndpoint one(world);
  one.wait(box, Tag{1});
  auto const until = std::chrono::steady_clock::now() + test::timeout_factor * 1s;
  auto const error = error_of([&] {
    while (std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(50ms);
      one.notify(box, one.id(), Tag{2});
    }
  });
  EXPECT_TRUE(says(error, Kind::deadline, {"wait, stream 0 of", "tag 1"}));
  EXPECT_THROW(one.synchronize(), Error);
  one.synchronize();
}

// Each of many waits is shorter than the deadline; together they are longer.
TEST_P(StreamFailures, count_a_deadline_for_each_wait) {
  auto const deadline = test::sanitized ? 1500ms : 300ms;
  World world(options(deadline));
  auto const box = world.window<u32>(4, Tags{4}, "mail");
  StreamEndpoint one(world);
  for (u32 i = 0; i < 6; ++i) one.wait(box, Tag{1});
  for (u32 i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(deadline / 3);
    box.notify(one.id(), Tag{1});
  }
  one.synchronize();
}

struct Fail {
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.fail("no");
  }
};

TEST_P(StreamFailures, hear_of_a_run_that_fails_while_they_wait) {
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

struct Await {
  Window<u32> box;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.wait(box, Tag{0});
  }
};

TEST_P(StreamFailures, of_a_run_name_streams_that_wait) {
  auto const box = world_.window<u32>(4, Tags{4}, "mail");
  a_.wait(box, {{Tag{1}, 1}, {Tag{3}, 2}});
  Launch launch;
  launch.with_host = true;
  launch.deadline = test::sanitized ? 1500ms : 300ms;
  auto const error = error_of([&] { world_.run(Await{box}, launch); });
  EXPECT_TRUE(says(
      error, Kind::deadline,
      {"MESHPOST_DEADLINE (seconds) or Launch::deadline [deadline]\n  rank 0",
       "\n  also waits: wait, stream 'a' of", "window 'mail': 0 of 1 notifications of tag 1"}));
  EXPECT_THROW(a_.synchronize(), Error);  // the run has failed
}

TEST_P(StreamFailures, of_runs_before_do_not_end_a_wait) {
  for (u32 i = 0; i < 5; ++i) {
    EXPECT_THROW(world_.run(Fail{}), Error);
    b_.wait(box_, Tag{1});
    std::this_thread::sleep_for(25ms);  // the supervisor looks meanwhile
    box_.notify(b_.id(), Tag{1});
    b_.synchronize();
  }
}

// A notification of any of them is progress.
TEST_P(StreamFailures, count_a_deadline_for_all_tags_of_a_wait) {
  auto const deadline = test::sanitized ? 1500ms : 300ms;
  World world(options(deadline));
  auto const box = world.window<u32>(4, Tags{4}, "mail");
  StreamEndpoint one(world);
  one.wait(box, {{Tag{0}, 1}, {Tag{1}, 6}});
  for (u32 i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(deadline / 3);
    box.notify(one.id(), Tag{1});
  }
  box.notify(one.id(), Tag{0});
  one.synchronize();
}

TEST_P(StreamFailures, have_their_work_done_before_a_window_is_freed) {
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
  auto const done = b_.stream().record();
  world_.free(box);
  EXPECT_TRUE(done->done());
  late.join();
  auto const error = error_of([&] { a_.notify(box, b_.id(), Tag{0}); });
  EXPECT_TRUE(says(error, Kind::bad_argument, {"notify", "'short lived' was freed before"}));
}

TEST_P(StreamFailures, have_their_work_done_before_their_world_ends) {
  std::optional<World> world(options());
  auto const box = world->window<u32>(1, Tags{1}, "box");
  std::optional<StreamEndpoint> one(std::in_place, *world, 0);
  StreamEndpoint moved = std::move(*one);
  EXPECT_TRUE(says(error_of([&] { one->wait(box, Tag{0}); }), Kind::misuse, {"moved from"}));
  one.reset();
  auto const id = moved.id();
  std::thread late([&] {
    std::this_thread::sleep_for(50ms);
    box.notify(id, Tag{0});
  });
  moved.wait(box, Tag{0});
  // The stream's next work can be seen outside of the World.
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

TEST_P(StreamFailures, refuse_wrong_arguments) {
  Buffer source(device(0), 10);
  auto const ten = source.span();
  auto const said_by = [&](std::function<void()> const& work, Kind kind,
                           std::initializer_list<std::string_view> pieces) {
    auto const error = error_of(work);
    EXPECT_TRUE(says(error, kind, pieces));
  };
  constexpr auto bad = Kind::bad_argument;
  said_by([&] { a_.notify(box_, RankId{9}, Tag{0}); }, bad,
          {"notify, stream 'a' of", "window 'box'", "rank 9"});
  said_by([&] { a_.notify(box_, RankId{0}, Tag{8}); }, bad,
          {"notify, stream 'a' of", "window 'box'", "tag 8", "8"});
  said_by([&] { a_.notify(box_, StreamId{9, 0}, Tag{0}); }, bad, {"device 9"});
  said_by([&] { a_.notify(box_, StreamId{0, 8}, Tag{0}); }, bad, {"0 to 7", "8"});
  said_by([&] { a_.notify(box_, StreamId{0, 0}, Tag{70}); }, bad, {"tag 70"});
  said_by([&] { a_.notify(box_, HostId{}, Tag{0}); }, bad, {"HostId::device is -1"});
  said_by([&] { a_.put(box_.at(RankId{9}), ten); }, bad,
          {"put, stream 'a' of", "window 'box'", "rank 9"});
  said_by([&] { a_.put(box_.at(RankId{0}, count - 3), ten); }, bad,
          {"elements 1048573 to 1048582", "rank 0, which has 1048576"});
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
  said_by([&] { a_.wait(box_, Tag{8}); }, bad, {"wait, stream 'a' of", "window 'box'", "tag 8"});
  said_by([&] { a_.wait(box_, Tag{0}, (1u << 30) + 1); }, bad, {"1073741825", "1073741824"});
  auto const many = world_.window<u32>(0, Tags{40}, "many");
  std::vector<Counts> all;
  for (u32 tag = 0; tag < 33; ++tag) all.push_back({Tag{tag}});
  said_by([&] { a_.wait(many, all); }, bad, {"33 tags", "32"});
  said_by([&] { a_.notify(Window<u32>{}, RankId{0}, Tag{0}); }, bad,
          {"its window was never made", "World::window"});
  World other(options());
  auto const foreign = other.window<u32>(1, Tags{1}, "foreign");
  said_by([&] { a_.notify(foreign, RankId{0}, Tag{0}); }, bad, {"with the World that made them"});
  said_by([&] { StreamEndpoint(world_, 9); }, bad, {"device 9 was named"});
  std::vector<StreamEndpoint> most;
  while (most.size() + b_.id().number < StreamId::most - 1) most.emplace_back(world_, last());
  said_by([&] { StreamEndpoint(world_, last()); }, bad, {"has 8 streams", "the most"});
  said_by([&] { box_.part(RankId{9}); }, bad, {"part, window 'box'", "rank 9"});
  EXPECT_EQ(box_.part(RankId{last()}).size(), count);
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

TEST_P(StreamFailures, are_refused_where_host_calls_are) {
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

TEST_P(StreamFailures, are_checked_in_kernels_too) {
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

INSTANTIATE_TEST_SUITE_P(Reaches, StreamFailures, test::all_reaches(), test::reach_name);

}  // namespace
}  // namespace meshpost::stream_failure_tests
