#include "net/engines/misuse.hpp"

namespace meshpost::net::test {
namespace {

using meshpost::test::error_of;
using meshpost::test::says;

std::unique_ptr<Engine> make() { return variants()[0].make(); }

TEST(MpiRefuses, texts_that_are_no_addresses) {
  auto const one = make(), two = make();
  auto const good = two->address();
  for (std::string const& bad :
       {std::string("nonsense"), std::string("mpi1/"), std::string("mpi1/0"),
        std::string("mpi1//1"), std::string("mpi1/0/"), std::string("mpi1/0/99999999999"),
        std::string("mpi1/7/1"), good + "x", "x" + good, good + "/1"})
    EXPECT_TRUE(says(error_of([&] { make()->connect({"", bad}); }), Kind::bad_environment,
                     {"connect to peer 1"}))
        << bad;
  EXPECT_TRUE(says(error_of([&] { one->connect({one->address()}); }), Kind::bad_environment,
                   {"this engine itself"}));
  EXPECT_TRUE(says(error_of([&] { make()->connect({good, good}); }), Kind::bad_environment,
                   {"peer 1", "another peer"}));
}

TEST(MpiRefuses, communicators_that_no_world_was_made_over) {
  EXPECT_TRUE(says(error_of([] { make_engine("mpi:12345", ""); }), Kind::bad_environment,
                   {"mpi:12345", "options_over"}));
}

TEST(MpiRefuses, what_is_not_allowed) {
  Group two(2, variants()[0]);
  auto& engine = *two.engines[0];
  expect_misuse_refused(engine);
  for (auto const* bad : {"", "mpimem1/", "mpimem1/x", "ofimem1/1/1"})
    EXPECT_TRUE(says(error_of([&] { engine.import(1, bad); }), Kind::bad_environment,
                     {"import of peer 1"}));
}

TEST(MpiLoses, a_peer_that_writes_where_nothing_is_exposed) {
  for (u64 const size : {u64{10}, u64{100'000}}) {
    Group two(2, variants()[0]);
    std::string target(64, 't');
    std::string const source(size, 's');
    auto const memory =
        two.engines[0]->import(1, two.engines[1]->expose(target.data(), Bytes{target.size()}));
    ASSERT_TRUE(two.retry([&] { return two.engines[0]->write(1, source, memory, 60, 1, 0); }));
    ASSERT_TRUE(two.until([&] { return !two.seen[1].lost.empty(); }));
    EXPECT_NE(two.seen[1].lost[0].second.find("where nothing is exposed"), std::string::npos);
    EXPECT_EQ(target, std::string(64, 't'));
    EXPECT_TRUE(two.seen[1].data.empty());
  }
}

TEST(MpiLoses, a_peer_whose_engine_has_ended_and_ends_what_was_under_way) {
  Group three(3, variants()[0]);
  std::string memory(1 << 20, 'm');
  auto const target =
      three.engines[0]->import(2, three.engines[2]->expose(memory.data(), Bytes{memory.size()}));
  u64 started = 0;
  while (started < 20)
    if (three.engines[0]->write(2, memory, target, 0, 0, started)) ++started;
  three.engines.pop_back();
  ASSERT_TRUE(
      three.until([&] { return three.seen[0].lost.size() + three.seen[1].lost.size() == 2; }));
  ASSERT_TRUE(three.until([&] { return three.seen[0].done.size() == started; }));
  EXPECT_EQ(three.seen[0].lost[0].first, 2u);
  EXPECT_NE(three.seen[1].lost[0].second.find("has ended"), std::string::npos);
  // Nothing more is started to the lost peer. Such operations are done at once.
  EXPECT_TRUE(three.engines[0]->send(2, std::string("hello"), {}, 77));
  ASSERT_TRUE(three.until([&] { return three.seen[0].done.size() == started + 1; }));
  // The other peer still works as before.
  ASSERT_TRUE(three.retry([&] { return three.engines[0]->send(1, std::string("hello"), {}, 78); }));
  EXPECT_TRUE(three.until([&] { return !three.seen[1].messages.empty(); }));
}

}  // namespace
}  // namespace meshpost::net::test
