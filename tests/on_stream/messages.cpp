// Messages between streams by message windows, requests that are posted many times, and
// explanations.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <random>
#include <thread>

#include "on_stream/two_streams.hpp"
#include "support/errors.hpp"

namespace meshpost::stream_message_tests {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::error_of;
using test::numbers;
using test::Reach;
using test::says;

// A small message window: its rings are full after 4 chunks of 256 bytes.
MessageWindowOptions small() {
  return {.streams = 2, .tags = 3, .slots = 4, .slot_bytes = 256, .name = "post"};
}

class StreamMessages : public test::TwoStreams {
 protected:
  std::vector<u32> got(Buffer const& buffer, u64 elements, u32 rank) {
    std::vector<u32> values(elements);
    device(rank).read(values.data(), buffer.span().data(), Bytes{elements * sizeof(u32)});
    return values;
  }
  void poison(Buffer& buffer) { buffer.write(std::vector<u32>(buffer.span().size(), 0xdeadbeef)); }
};

TEST_P(StreamMessages, bring_any_size_to_where_the_receiver_says) {
  std::mt19937 random(
      static_cast<u32>(std::chrono::steady_clock::now().time_since_epoch().count()));
  SCOPED_TRACE(testing::Message() << "seed of the state: " << random());
  u64 const most = GetParam() == Reach::apart ? 5000 : 200'000;
  for (auto const& options : {small(), MessageWindowOptions{.streams = 2, .tags = 2}}) {
    MessageWindow const box(world_, options);
    Buffer from(device(0), most), to(device(last()), most);
    for (u64 const elements : {u64{0}, u64{1}, u64{63}, u64{64}, u64{65}, u64{1000}, most}) {
      auto const values = numbers(elements, random());
      from.write(values);
      poison(to);
      a_.send(box, b_.id(), from.span().first(elements), Tag{1});
      b_.receive(box, a_.id(), to.span().first(elements), Tag{1});
      a_.synchronize();
      b_.synchronize();
      auto const all = got(to, most, last());
      EXPECT_TRUE(std::equal(values.begin(), values.end(), all.begin())) << elements;
      if (elements < most) {
        EXPECT_EQ(all[elements], 0xdeadbeefu) << elements;
      }
    }
    world_.free(box.window());
  }
}

// Tags are independent; messages of one tag come in order. Both streams send first.
TEST_P(StreamMessages, of_a_tag_come_in_order_whatever_other_tags_do) {
  MessageWindow const box(world_, small());
  constexpr u64 size = 8;
  Buffer from(device(0), size), to(device(last()), size), back(device(last()), size),
      home(device(0), size);
  from.write({1, 2, 3, 4, 5, 6, 7, 8});
  back.write({11, 12, 13, 14, 15, 16, 17, 18});
  auto const one = [](Buffer const& buffer, u64 i) { return buffer.span().subspan(i, 1); };
  for (u32 i = 0; i < 4; ++i) {
    a_.send(box, b_.id(), one(from, 2 * i), Tag{0});
    a_.send(box, b_.id(), one(from, 2 * i + 1), Tag{2});
    b_.send(box, a_.id(), one(back, i), Tag{0});
  }
  for (u32 i = 0; i < 4; ++i) b_.receive(box, a_.id(), one(to, 4 + i), Tag{2});
  for (u32 i = 0; i < 4; ++i) b_.receive(box, a_.id(), one(to, i), Tag{0});
  for (u32 i = 0; i < 4; ++i) a_.receive(box, b_.id(), one(home, i), Tag{0});
  a_.synchronize();
  b_.synchronize();
  EXPECT_EQ(got(to, size, last()), (std::vector<u32>{1, 3, 5, 7, 2, 4, 6, 8}));
  EXPECT_EQ(got(home, 4, 0), (std::vector<u32>{11, 12, 13, 14}));
}

// A stream whose receiver is not ready holds up neither its host nor another stream.
TEST_P(StreamMessages, wait_for_their_receiver_and_hold_up_nobody_else) {
  MessageWindow const box(world_, small());
  StreamEndpoint other(world_, 0, "other");  // an own number, also on one device
  auto const words = world_.window<u32>(1, Tags{2}, "words");
  Buffer from(device(0), 1000), to(device(last()), 1000);
  auto const values = numbers(1000, 5);
  from.write(values);
  a_.send(box, b_.id(), from.span(), Tag{0});  // more than the ring holds
  auto const sent = a_.stream().record();
  other.notify(words, world_.host(), Tag{0});
  words.wait(Tag{0});
  EXPECT_FALSE(sent->done());
  b_.receive(box, a_.id(), to.span(), Tag{0});
  a_.synchronize();
  b_.synchronize();
  EXPECT_EQ(got(to, 1000, last()), values);
}

TEST_P(StreamMessages, may_be_shorter_if_the_receiver_counts) {
  MessageWindow const box(world_, small());
  Buffer from(device(0), 500), to(device(last()), 500);
  auto const values = numbers(500, 9);
  from.write(values);
  auto const asked = device(0).allocate(Bytes{sizeof(u64)}, MemoryKind::device),
             came = device(last()).allocate(Bytes{sizeof(u64)}, MemoryKind::device);
  for (u64 const elements : {u64{0}, u64{70}, u64{500}, u64{9999}}) {
    poison(to);
    device(0).write(asked.data(), &elements, Bytes{sizeof elements});
    a_.send(box, b_.id(), CountedSource<u32>{from.span(), asked.as<u64>()}, Tag{1});
    b_.receive(box, a_.id(), to.span(), Tag{1}, came.as<u64>());
    a_.synchronize();
    b_.synchronize();
    u64 counted = 77;
    device(last()).read(&counted, came.data(), Bytes{sizeof counted});
    u64 const expected = std::min<u64>(elements, 500);
    EXPECT_EQ(counted, expected);
    auto const all = got(to, 500, last());
    EXPECT_TRUE(std::equal(all.begin(), all.begin() + static_cast<i32>(expected), values.begin()));
    if (expected < 500) {
      EXPECT_EQ(all[expected], 0xdeadbeefu);
    }
  }
}

// Random messages of both directions, posted by prepared requests; each ring wraps many times.
TEST_P(StreamMessages, of_prepared_requests_may_be_posted_many_times) {
  MessageWindow const box(world_, small());
  auto const words = world_.window<u32>(1, Tags{2}, "words");
  u32 const rounds = GetParam() == Reach::apart ? 10 : 200;
  constexpr u64 size = 150;  // three chunks of four
  Buffer ping(device(0), size), pong(device(last()), size);
  auto const values = numbers(size, 3);
  ping.write(values);
  poison(pong);
  auto there = a_.prepare().send(box, b_.id(), ping.span(), Tag{0});
  auto arrives = b_.prepare().receive(box, a_.id(), pong.span(), Tag{0});
  auto back = b_.prepare().send(box, a_.id(), pong.span(), Tag{1});
  auto home = a_.prepare().receive(box, b_.id(), ping.span(), Tag{1});
  auto tell = a_.prepare().notify(words, b_.id(), Tag{0});
  auto hear = b_.prepare().wait(words, Tag{0});
  for (u32 i = 0; i < rounds; ++i) {
    there.post();
    arrives.post();
    back.post();
    home.post();
    tell.post();
    hear.post();
  }
  a_.synchronize();
  b_.synchronize();
  EXPECT_EQ(got(ping, size, 0), values);
}

TEST_P(StreamMessages, of_another_size_end_the_receiver_with_an_error) {
  MessageWindow const box(world_, small());
  Buffer from(device(0), 100), to(device(last()), 100);
  a_.send(box, b_.id(), from.span().first(100), Tag{2});
  b_.receive(box, a_.id(), to.span().first(50), Tag{2});
  a_.synchronize();
  auto const error = error_of([&] { b_.synchronize(); });
  EXPECT_TRUE(says(error, Kind::bad_argument,
                   {"receive, stream 'b'", "window 'post'",
                    "400 bytes with tag 2 came from stream 0", "the target has 200"}));
  auto const torn = error_of([&] { b_.receive(box, a_.id(), to.span(), Tag{2}); });
  EXPECT_TRUE(says(torn, Kind::misuse, {"receive, stream 'b'", "half there", "make a new one"}));
  // Other operations go on, and so does a new message window.
  world_.free(box.window());
  MessageWindow const next(world_, small());
  a_.send(next, b_.id(), from.span(), Tag{2});
  b_.receive(next, a_.id(), to.span(), Tag{2});
  a_.synchronize();
  b_.synchronize();
}

TEST_P(StreamMessages, of_parts_of_elements_end_a_receiver_that_counts) {
  MessageWindow const box(world_, small());
  Buffer from(device(0), 100), to(device(last()), 100);
  auto const came = device(last()).allocate(Bytes{sizeof(u64)}, MemoryKind::device);
  std::span<u8 const> const bytes(reinterpret_cast<u8 const*>(from.span().data()), 6);
  a_.send(box, b_.id(), bytes, Tag{0});
  b_.receive(box, a_.id(), to.span(), Tag{0}, came.as<u64>());
  a_.synchronize();
  EXPECT_TRUE(says(error_of([&] { b_.synchronize(); }), Kind::bad_argument,
                   {"a message of 6 bytes", "no whole number of elements of 4 bytes"}));
}

// On a GPU the chunks of a receive have a block each. Those of the message behind are no success.
TEST_P(StreamMessages, of_another_size_are_found_when_the_next_one_fills_the_target) {
  Buffer from(device(0), 1000), to(device(last()), 1000);
  for (u32 i = 0; i < 5; ++i) {
    MessageWindow const box(world_, {.streams = 2, .tags = 1, .slots = 32, .slot_bytes = 256});
    a_.send(box, b_.id(), from.span().first(320), Tag{0});
    a_.send(box, b_.id(), from.span(), Tag{0});
    b_.receive(box, a_.id(), to.span(), Tag{0});
    a_.synchronize();
    EXPECT_TRUE(says(error_of([&] { b_.synchronize(); }), Kind::bad_argument,
                     {"receive, stream 'b'", "1280 bytes", "the target has 4000"}));
    b_.synchronize();  // it is fresh
    world_.free(box.window());
  }
}

// The channels belong to the number of the stream.
TEST_P(StreamMessages, may_be_half_there_for_the_next_stream_of_that_number) {
  MessageWindow const box(world_, {.streams = 3, .tags = 1, .name = "post"});
  Buffer from(device(0), 100), to(device(last()), 100);
  StreamId failed{};
  {
    StreamEndpoint c(world_, last(), "c");
    failed = c.id();
    a_.send(box, failed, from.span(), Tag{0});
    c.receive(box, a_.id(), to.span().first(50), Tag{0});
  }
  StreamEndpoint next(world_, last(), "next");
  ASSERT_EQ(next.id().number, failed.number);
  EXPECT_TRUE(says(error_of([&] { next.receive(box, a_.id(), to.span(), Tag{0}); }), Kind::misuse,
                   {"receive, stream 'next'", "half there"}));
  a_.synchronize();
}

TEST_P(StreamMessages, of_sizes_and_counts_that_cannot_be_are_refused) {
  MessageWindow const box(world_, small());
  Buffer buffer(device(0), 10);
  std::span<u32> const endless(buffer.span().data(), (u64{1} << 62) + 5);
  auto const refused = [&](auto const& work, std::string_view why) {
    EXPECT_TRUE(says(error_of(work), Kind::bad_argument, {"stream 'a' of", why}));
  };
  refused([&] { a_.send(box, b_.id(), endless, Tag{0}); }, "elements of 4 bytes were named");
  refused([&] { a_.receive(box, b_.id(), endless, Tag{0}); }, "elements of 4 bytes were named");
  refused([&] { a_.receive(box, b_.id(), buffer.span(), Tag{0}, reinterpret_cast<u64*>(3)); },
          "align it to 8 bytes");
  refused([&] { a_.put(box_.at(RankId{0}), endless); }, "were named");
  EXPECT_TRUE(says(error_of([&] {
                     MessageWindow(world_,
                                   {.streams = 8, .tags = 1024, .slots = 1024, .name = "big"});
                   }),
                   Kind::bad_argument, {"make message window 'big'", "bytes of each device"}));
}

TEST(MessageWindows, between_devices_out_of_reach_have_so_many_channels) {
  auto wanted = test::options(1, "cpu:5");
  wanted.apart = true;
  World world(wanted);
  auto const error =
      error_of([&] { MessageWindow(world, {.streams = StreamId::most, .tags = 1024}); });
  EXPECT_TRUE(says(error, Kind::bad_argument, {"40960 channels", "fewer streams or tags"}));
}

TEST_P(StreamMessages, are_refused_by_what_is_left_of_a_stream_that_is_gone) {
  MessageWindow const box(world_, {.streams = 3, .tags = 1, .name = "post"});
  Buffer from(device(0), 100);
  auto stream = std::make_optional<StreamEndpoint>(world_, 0, "gone");
  auto prepares = stream->prepare();
  auto explains = stream->explain();
  auto request = prepares.send(box, b_.id(), from.span(), Tag{0});
  stream.reset();
  for (auto const& call : std::initializer_list<std::function<void()>>{
           [&] { prepares.send(box, b_.id(), from.span(), Tag{0}); },
           [&] { explains.send(box, b_.id(), from.span(), Tag{0}); }, [&] { request.post(); }})
    EXPECT_TRUE(says(error_of(call), Kind::misuse, {"stream 'gone'", "does not exist any more"}));
}

TEST_P(StreamMessages, that_nobody_sends_or_receives_end_by_the_deadline) {
  World world(options(200ms));
  MessageWindow const box(world, small());
  StreamEndpoint one(world, 0, "one"), two(world, 0, "two");
  Buffer buffer(*world.devices()[0], 300);
  two.send(box, one.id(), buffer.span(), Tag{2});  // five chunks, four slots
  std::this_thread::sleep_for(100ms);  // so that it waits, or has waited, when the other gives up
  one.receive(box, two.id(), buffer.span(), Tag{1});
  auto const none = error_of([&] { one.synchronize(); });
  EXPECT_TRUE(says(none, Kind::deadline,
                   {"receive, stream 'one'", "window 'post'",
                    "no message with tag 1 had come from stream 1 of device 0 ('two')", "0.2 s",
                    "\n  also wait", "send, stream 'two'",
                    "\n  a message with tag 2 has come from stream 1 of device 0 ('two')"}));
  auto const full = error_of([&] { two.synchronize(); });
  EXPECT_TRUE(
      says(full, Kind::deadline,
           {"send, stream 'two'", "no room for chunk 5 of 5",
            "stream 0 of device 0 ('one') has not received", "tag 2", "if both send first"}));
}

TEST_P(StreamMessages, to_itself_must_be_sent_first) {
  World world(options(200ms));
  MessageWindow const box(world, small());
  StreamEndpoint one(world, 0, "one");
  Buffer buffer(*world.devices()[0], 10);
  one.receive(box, one.id(), buffer.span(), Tag{0});
  one.send(box, one.id(), buffer.span(), Tag{0});
  auto const error = error_of([&] { one.synchronize(); });
  EXPECT_TRUE(says(error, Kind::deadline, {"receive, stream 'one'", "or send first"}));
  EXPECT_EQ(error.cause().find("has come"), std::string::npos) << error.cause();
}

TEST_P(StreamMessages, refuse_bad_arguments) {
  MessageWindow const box(world_, {.streams = 1, .tags = 2, .slots = 2, .slot_bytes = 128});
  Buffer buffer(device(0), 10);
  StreamEndpoint second(world_, 0, "second"), third(world_, 0, "third");
  auto const refused = [&](auto const& call, std::initializer_list<std::string_view> parts) {
    EXPECT_TRUE(says(error_of(call), Kind::bad_argument, parts));
  };
  refused([&] { third.send(box, a_.id(), buffer.span(), Tag{0}); },
          {"send", "window 'messages'", "of its device; the message window has 1"});
  refused([&] { a_.send(box, StreamId{99, 0}, buffer.span(), Tag{0}); },
          {"send", "stream 0 of device 99 was named"});
  refused([&] { a_.receive(box, StreamId{0, 1}, buffer.span(), Tag{0}); },
          {"receive", "stream 1 of device 0 was named"});
  refused([&] { a_.send(box, a_.id(), buffer.span(), Tag{2}); }, {"send", "tag 2", "it has 2"});
  refused([&] { a_.receive(box, a_.id(), std::span<u32>(static_cast<u32*>(nullptr), 2), Tag{0}); },
          {"receive", "2 elements were named at a null pointer"});
  refused([&] { MessageWindow(world_, {.streams = 9}); }, {"9 streams", "1 to 8"});
  refused([&] { MessageWindow(world_, {.tags = 0}); }, {"0 tags"});
  refused([&] { MessageWindow(world_, {.slots = 3}); }, {"3 slots", "power of two"});
  refused([&] { MessageWindow(world_, {.slot_bytes = 100}); }, {"100 bytes", "multiple of 128"});
  auto late = a_.prepare().send(box, a_.id(), buffer.span(), Tag{0});
  world_.free(box.window());
  EXPECT_EQ(error_of([&] { late.post(); }).kind(), Kind::bad_argument);
  std::optional<StreamEndpoint> gone(std::in_place, world_, 0);
  auto orphan = gone->prepare().notify(box_, a_.id(), Tag{0});
  gone.reset();
  EXPECT_TRUE(says(error_of([&] { orphan.post(); }), Kind::misuse,
                   {"notify, post a request", "does not exist any more"}));
}

TEST_P(StreamMessages, are_explained_before_they_are_sent) {
  MessageWindow const box(world_, small());
  Buffer buffer(device(0), 200);
  auto const target = box_.at(RankId{last()});
  auto const put = a_.explain().put_notify(target, buffer.span(), b_.id(), Tag{1});
  EXPECT_NE(put.find("put_notify, stream 'a' of"), std::string::npos) << put;
  EXPECT_NE(put.find("window 'box': 800 B to stream"), std::string::npos) << put;
  bool const far = GetParam() == Reach::apart;
  auto const way = far ? "out of reach" : test::on_gpus() ? "a kernel of 1 block" : "thread copies";
  EXPECT_NE(put.find(way), std::string::npos) << put;
  auto const send = a_.explain().send(box, b_.id(), buffer.span(), Tag{1});
  EXPECT_NE(send.find("800 B to stream"), std::string::npos) << send;
  EXPECT_NE(send.find("with tag 1 in 4 chunks"), std::string::npos) << send;
  auto const wait = a_.explain().wait(box_, Tag{1}, 3);
  EXPECT_NE(wait.find("notifications: 3 of tag 1: "), std::string::npos) << wait;
  a_.synchronize();  // nothing was queued
  b_.synchronize();
  EXPECT_THROW(a_.explain().notify(box_, RankId{99}, Tag{0}), Error);
}

INSTANTIATE_TEST_SUITE_P(, StreamMessages, test::all_reaches(), test::reach_name);

}  // namespace
}  // namespace meshpost::stream_message_tests
