// What two processes prove to each other, and what proves nothing.
#include "world/greeting.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/errors.hpp"

namespace meshpost::greeting {
namespace {

using test::error_of;
using test::says;

struct Greeting : testing::Test {
  Secret secret{random_bytes()};
  Digest hub = random_bytes();
  Hello mine{3, 5, version(), 1234, "node-b", "job 7", random_bytes()};
};

TEST_F(Greeting, tells_process_0_who_it_is) {
  EXPECT_EQ(read_challenge(challenge(hub)), hub);
  auto const read = read_hello(hello(mine, hub, secret), hub, secret);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process, 3u);
  EXPECT_EQ(read->processes, 5u);
  EXPECT_EQ(read->version, version());
  EXPECT_EQ(read->pid, 1234);
  EXPECT_EQ(read->host, "node-b");
  EXPECT_EQ(read->job, "job 7");
  EXPECT_EQ(read->challenge, mine.challenge);
  EXPECT_TRUE(read_welcome(welcome(read->challenge, hub, secret), mine.challenge, hub, secret));
}

TEST_F(Greeting, holds_for_one_pair_of_challenges_and_one_secret) {
  Secret const other(random_bytes());
  auto const said = hello(mine, hub, secret);
  EXPECT_FALSE(read_hello(said, random_bytes(), secret));
  EXPECT_FALSE(read_hello(said, hub, other));
  auto const answer = welcome(mine.challenge, hub, secret);
  EXPECT_FALSE(read_welcome(answer, random_bytes(), hub, secret));
  EXPECT_FALSE(read_welcome(answer, mine.challenge, random_bytes(), secret));
  EXPECT_FALSE(read_welcome(answer, mine.challenge, hub, other));
}

// Who does not know the secret can only send back what it was sent.
TEST_F(Greeting, proofs_of_one_direction_prove_nothing_in_the_other) {
  auto const said = hello(mine, hub, secret);
  EXPECT_FALSE(
      read_welcome(said.substr(said.size() - sizeof(Digest)), mine.challenge, hub, secret));
  auto const answer = welcome(mine.challenge, hub, secret);
  EXPECT_FALSE(read_welcome(answer, hub, mine.challenge, secret));
  Digest proof{};
  std::copy(answer.begin(), answer.end(), proof.begin());
  std::string const text(mine.challenge.begin(), mine.challenge.end());
  EXPECT_FALSE(read_hello(wire::Packer().text(text).value(proof).take(), hub, secret));
}

TEST_F(Greeting, with_any_bit_changed_proves_nothing) {
  auto const said = hello(mine, hub, secret);
  auto const answer = welcome(mine.challenge, hub, secret);
  for (std::size_t bit = 0; bit < said.size() * 8; ++bit) {
    auto changed = said;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    try {
      EXPECT_FALSE(read_hello(changed, hub, secret)) << bit;
    } catch (Error const& error) {  // the length of what it said
      EXPECT_EQ(error.kind(), Kind::bad_argument);
    }
  }
  for (std::size_t bit = 0; bit < answer.size() * 8; ++bit) {
    auto changed = answer;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(read_welcome(changed, mine.challenge, hub, secret)) << bit;
  }
}

TEST_F(Greeting, of_garbage_is_an_error_or_proves_nothing) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string garbage(random() % 200, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    if (garbage.size() >= 8 && random() % 2) {
      garbage.replace(1, 7, std::string(7, '\0'));
      if (random() % 2) garbage.replace(0, 8, "meshpost");
    }
    try {
      EXPECT_FALSE(read_hello(garbage, hub, secret));
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), Kind::bad_argument);
    }
    EXPECT_FALSE(read_welcome(garbage, mine.challenge, hub, secret));
    try {
      (void)read_challenge(garbage);
      EXPECT_EQ(garbage.size(), 40u);
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), Kind::bad_argument);
    }
  }
}

// Proven, so by this job, but by another version: what it lacks must not be guessed.
TEST_F(Greeting, that_is_proven_and_cut_short_is_an_error_unless_of_another_version) {
  for (bool const same : {true, false}) {
    auto const said =
        wire::Packer().value(u32{3}).value(u32{5}).value(version() + (same ? 0 : 1)).take();
    std::string const theirs(hub.begin(), hub.end());
    auto const bytes =
        wire::Packer().text(said).value(secret.proof("hello" + theirs + said)).take();
    if (same) {
      EXPECT_TRUE(says(error_of([&] { read_hello(bytes, hub, secret); }), Kind::bad_argument,
                       {"too early"}));
    } else {
      auto const read = read_hello(bytes, hub, secret);
      ASSERT_TRUE(read);
      EXPECT_EQ(read->version, version() + 1);
    }
  }
}

}  // namespace
}  // namespace meshpost::greeting
