// Messages between two processes about a copy, with no process and no network.
#include "copy/job/copy_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "net/lossy_line.hpp"
#include "support/bytes.hpp"
#include "support/errors.hpp"

namespace meshpost::test {
namespace {

using copying::CopyRequest;
using copying::CopyServer;
using copying::Message;
using copying::read_message;

Message read(Message const& message, std::string_view bytes = {}, u64 size = sizeof(Message)) {
  return read_message({{reinterpret_cast<char const*>(&message), size}, bytes, false});
}

TEST(CopyMessage, garbage_is_refused) {
  Message const good{
      .type = Message::Type::put, .exposure = 1, .piece = 2, .offset = 3, .bytes = 4};
  EXPECT_EQ(read(good, "abcd").bytes, 4u);
  for (u64 size = 0; size < sizeof good; ++size) EXPECT_THROW(read(good, "abcd", size), Error);
  EXPECT_THROW(read(good, "abc"), Error);
  EXPECT_THROW(read(good, "abcde"), Error);
  EXPECT_THROW(
      read({.type = Message::Type::get, .exposure = 1, .piece = 2, .offset = 3, .bytes = 4},
           "abcd"),
      Error);
  EXPECT_THROW(
      read({.type = Message::Type::count, .exposure = 1, .piece = 2, .offset = 3, .bytes = 0}),
      Error);
  EXPECT_THROW(read({.type = Message::Type::get,
                     .exposure = 1,
                     .piece = 2,
                     .offset = 3,
                     .bytes = copying::largest_piece + 1}),
               Error);
  EXPECT_THROW(
      read({.type = Message::Type::get, .exposure = 1, .piece = 2, .offset = 3, .bytes = ~u64{0}}),
      Error);
}

// A copy between memory here and exposure 5 of process 1.
CopyRequest request(Message::Type type, u64 offset, std::span<char> here) {
  return {.type = type,
          .process = 1,
          .exposure = 5,
          .offset = offset,
          .here = here.data(),
          .size = here.size()};
}

struct Bytestore : copying::Store {
  std::vector<char> bytes;
  void check(u32 exposure, u64 offset, u64 size) const {
    if (exposure != 5 || offset > bytes.size() || size > bytes.size() - offset)
      throw Error(Kind::bad_argument, "copy", "it is not there", "look elsewhere");
  }
  void write(u32 exposure, u64 offset, std::string_view all) override {
    check(exposure, offset, all.size());
    std::ranges::copy(all, bytes.begin() + static_cast<i64>(offset));
  }
  void read(u32 exposure, u64 offset, char* target, u64 size) override {
    check(exposure, offset, size);
    std::memcpy(target, bytes.data() + offset, size);
  }
};

struct Pair {
  explicit Pair(u64 seed) : random(seed) {
    auto one = std::make_unique<LossyLine>(random, 0),
         other = std::make_unique<LossyLine>(random, 1);
    wires[0] = one.get(), wires[1] = other.get();
    one->other = other.get(), other->other = one.get();
    auto const name = [](u32 process) { return "process " + std::to_string(process); };
    servers[0] = std::make_unique<CopyServer>(std::move(one), stores[0], 2, name);
    servers[1] = std::make_unique<CopyServer>(std::move(other), stores[1], 2, name);
  }
  void work() {
    servers[0]->work();
    servers[1]->work();
  }
  void finish(copying::StatePtr const& state) {
    for (int i = 0; i < 1'000'000 && !state->done(); ++i) work();
    ASSERT_TRUE(state->done());
    state->wait();
  }
  std::mt19937_64 random;
  Bytestore stores[2];
  LossyLine* wires[2];
  std::unique_ptr<CopyServer> servers[2];
};

TEST(CopyServer, brings_all_bytes_in_any_order_and_holds_few) {
  for (u64 seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Pair pair(seed);
    auto& there = pair.stores[1].bytes;
    there = test::random_data<std::vector<char>>(pair.random, 100'000);
    auto const before = there;
    std::vector<char> got(60'000), put(30'000, 'x'), small(3, 'y');
    std::vector<copying::StatePtr> all = {
        pair.servers[0]->ask(request(Message::Type::get, 100, got)),
        pair.servers[0]->ask(request(Message::Type::put, 70'000, put)),
        pair.servers[0]->ask(request(Message::Type::put, 60'500, small))};
    for (auto const& one : all) pair.finish(one);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), before.begin() + 100));
    EXPECT_EQ(std::count(there.begin() + 70'000, there.end(), 'x'), 30'000);
    EXPECT_EQ(std::string(there.data() + 60'500, 3), "yyy");
    EXPECT_EQ(there[60'499], before[60'499]);
    EXPECT_EQ(there[60'503], before[60'503]);
    EXPECT_TRUE(pair.servers[0]->idle());
    EXPECT_LE(pair.wires[0]->most_waiting, CopyServer::window);
    EXPECT_LE(pair.wires[1]->most_waiting, CopyServer::window);
  }
}

TEST(CopyServer, a_refusal_ends_that_copy_alone) {
  Pair pair(3);
  pair.stores[1].bytes.resize(10'000, 'a');
  std::vector<char> here(100'000, 'b'), fine(10'000, 'b');
  auto const out = pair.servers[0]->ask(request(Message::Type::put, 5000, here));
  auto const unknown = pair.servers[0]->ask(
      {.type = Message::Type::get, .process = 1, .exposure = 6, .here = here.data(), .size = 10});
  auto const good =
      pair.servers[0]->ask(request(Message::Type::get, 0, std::span(fine).first(4000)));
  EXPECT_TRUE(says(error_of([&] { pair.finish(out); }), Kind::bad_argument, {"it is not there"}));
  EXPECT_TRUE(says(error_of([&] { pair.finish(unknown); }), Kind::bad_argument, {"elsewhere"}));
  pair.finish(good);
  EXPECT_EQ(std::count(fine.begin(), fine.end(), 'a'), 4000);
  EXPECT_TRUE(pair.servers[0]->idle());
}

// Plays the other end, by a channel of its own.
struct Liar final : net::Channel::Client {
  explicit Liar(u64 seed) : random(seed) {
    auto one = std::make_unique<LossyLine>(random, 0),
         other = std::make_unique<LossyLine>(random, 1);
    one->other = other.get(), other->other = one.get();
    server = std::make_unique<CopyServer>(
        std::move(one), store, 2, [](u32 process) { return "process " + std::to_string(process); });
    channel = std::make_unique<net::Channel>(std::move(other), 2);
    channel->serve(Message::message_kind, *this);
  }
  void on_message(u32, net::Channel::Message const&) override { ++asked; }
  void on_lost(u32, std::string const&) override {}
  Error answers(copying::StatePtr const& copy, std::string_view header, std::string_view bytes) {
    auto const source = std::make_shared<std::string>(bytes);
    bool said = false;
    for (int i = 0; i < 10'000 && !copy->done(); ++i) {
      server->work();
      channel->poll();
      if (asked != 0 && !said)
        said = channel->send(0, Message::message_kind,
                             {.header = header, .bytes = *source, .source = source}) !=
               net::Channel::Sent::no;
    }
    return error_of([&] { copy->wait(); });
  }
  Error answers(copying::StatePtr const& copy, Message const& message, std::string_view bytes) {
    return answers(copy, {reinterpret_cast<char const*>(&message), sizeof message}, bytes);
  }
  std::mt19937_64 random;
  Bytestore store;
  std::unique_ptr<CopyServer> server;
  std::unique_ptr<net::Channel> channel;
  u32 asked = 0;
};

TEST(CopyServer, answers_that_nobody_asked_for_are_refused) {
  Liar liar(4);
  std::vector<char> here(8, 'b');
  auto const ask = [&] {
    return liar.server->ask(request(Message::Type::get, 0, std::span(here).first(8)));
  };
  EXPECT_TRUE(says(
      liar.answers(ask(), {.type = Message::Type::bytes, .exposure = 5, .piece = 77, .bytes = 8},
                   "ABCDEFGH"),
      Kind::peer_lost, {"process 1", "piece 77, which nobody asked for"}));
  EXPECT_EQ(std::string(here.data(), 8), "bbbbbbbb");
  // From then on it is not believed any more.
  EXPECT_TRUE(says(
      liar.answers(ask(), {.type = Message::Type::bytes, .exposure = 5, .piece = 1, .bytes = 8},
                   "ABCDEFGH"),
      Kind::peer_lost, {"process 1"}));
}

TEST(CopyServer, answers_of_another_size_or_kind_are_refused) {
  std::vector<char> here(16, 'b');
  auto const copy = [&](Liar& liar) {
    return liar.server->ask(request(Message::Type::get, 0, std::span(here).first(8)));
  };
  Liar longer(5), other(6), shorter(7);
  EXPECT_TRUE(
      says(longer.answers(copy(longer),
                          {.type = Message::Type::bytes, .exposure = 5, .piece = 1, .bytes = 9},
                          "ABCDEFGHI"),
           Kind::peer_lost, {"process 1"}));
  EXPECT_TRUE(
      says(other.answers(copy(other),
                         {.type = Message::Type::done, .exposure = 5, .piece = 1, .bytes = 8}, ""),
           Kind::peer_lost, {"process 1"}));
  EXPECT_TRUE(says(shorter.answers(copy(shorter), "short", ""), Kind::peer_lost, {"process 1"}));
  EXPECT_EQ(std::count(here.begin(), here.end(), 'b'), 16);
}

TEST(CopyServer, copies_of_a_lost_process_end_and_later_ones_too) {
  Pair pair(6);
  std::vector<char> here(100'000, 'b');
  auto const copy = pair.servers[0]->ask(request(Message::Type::put, 0, here));
  for (int i = 0; i < 5; ++i) pair.servers[0]->work();
  pair.servers[0]->channel().lose(1, "it fell");
  EXPECT_TRUE(
      says(error_of([&] { pair.finish(copy); }), Kind::peer_lost, {"process 1", "it fell"}));
  auto const late = pair.servers[0]->ask(request(Message::Type::get, 0, std::span(here).first(1)));
  EXPECT_TRUE(says(error_of([&] { pair.finish(late); }), Kind::peer_lost, {"it fell"}));
  EXPECT_TRUE(pair.servers[0]->idle());
}

}  // namespace
}  // namespace meshpost::test
