// Callers that have proven nothing can use few resources, and keep nobody out.
#include <malloc.h>

#include "world/players.hpp"
#include "world/sides.hpp"

namespace meshpost {
namespace {

using namespace test;

using TlsUnauthenticatedPeers = TlsTest;

// A record that is too large, and one with the beginning of a message of 128 KiB.
std::string const claims_all("\x16\x03\x01\xff\xff\x01\x00\xff\xff", 9);
std::string const claims_much("\x16\x03\x01\x00\x04\x01\x01\xff\xf0", 9);

TEST_F(TlsUnauthenticatedPeers, take_no_more_than_a_greeting_of_who_has_proven_nothing) {
  for (auto const& words : {claims_all, claims_much, caller_.out.substr(0, 50)}) {
    Side acceptor(context_, End::acceptor);
    auto const flood = [&] {
      acceptor.take(words);
      for (std::size_t sent = 0; sent < Tls::most_before_proof; sent += 100)
        acceptor.take(std::string(100, '\0'));
    };
    EXPECT_TRUE(is_garbage_or_other_secret(error_of(flood)));
    EXPECT_TRUE(acceptor.text.empty());
  }
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
std::size_t allocated() {
  auto const all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

TEST_F(TlsUnauthenticatedPeers, have_little_memory_for_an_unauthenticated_peer_whatever_it_claims) {
  for (auto const& words : {std::string(), claims_much, caller_.out.substr(0, 100), caller_.out}) {
    std::vector<Side> unauthenticated;
    auto const before = allocated();
    for (int i = 0; i < 64; ++i) unauthenticated.emplace_back(context_, End::acceptor).take(words);
    EXPECT_LT((allocated() - before) / 64, 256u << 10);
  }
}
#endif

TEST_F(TlsUnauthenticatedPeers, are_proven_by_no_garbage) {
  auto const right = caller_.give();
  u32 errors = 0, waiting = 0;
  for (int round = 0; round < 3000; ++round) {
    auto words = below(20) ? right : bytes(below(600));
    for (auto left = 1 + below(5); left > 0 && !words.empty(); --left) {
      auto const at = below(words.size()), size = below(words.size() - at + 1);
      switch (below(5)) {
        case 0: words.erase(at, size); break;
        case 1: words.insert(at, bytes(below(40))); break;
        case 2: words.insert(at, words.substr(below(words.size()), below(40))); break;
        case 3: words.resize(at); break;
        default: words[at] = static_cast<char>(random_());
      }
    }
    Side acceptor(context_, End::acceptor);
    try {
      for (std::size_t at = 0; at < words.size();) {
        auto const piece = words.substr(at, below(4) ? words.size() : 1 + below(50));
        at += piece.size();
        acceptor.take(piece);
      }
      ++waiting;
    } catch (Error const& error) {
      ASSERT_TRUE(is_garbage_or_other_secret(error)) << error.what();
      ++errors;
    }
    ASSERT_FALSE(acceptor.tls.is_proven());
    ASSERT_TRUE(acceptor.text.empty());
  }
  EXPECT_GT(errors, 300u);
  EXPECT_GT(waiting, 30u);
}

// The caller's last bytes of a greeting, changed in any way: the acceptor does not trust it more
// than before.
TEST_F(TlsUnauthenticatedPeers, are_not_proven_by_half_a_greeting) {
  for (int round = 0; round < 300; ++round) {
    auto [caller, acceptor] = Sides(context_);
    acceptor.take(caller.give());
    caller.take(acceptor.give());
    auto last = caller.give();
    switch (below(3)) {
      case 0: last.resize(below(last.size())); break;
      case 1: flip(last, 5 * 8 + below((last.size() - 5) * 8)); break;
      default: last = bytes(last.size());
    }
    try {
      acceptor.take(last);
    } catch (Error const& error) {
      ASSERT_TRUE(is_garbage_or_other_secret(error)) << error.what();
    }
    ASSERT_FALSE(acceptor.tls.is_proven());
  }
}

// -- at the acceptor of a job

// They have 5 s, whatever they have begun to send. Then process 0 hangs up.
TEST(Joining, takes_too_long_for_who_stops_in_the_middle) {
  auto jobs = make_jobs(2);
  auto first = joining(jobs[0]);
  auto const words = first_words(*Secret::from_hex(jobs[0].secret));
  std::vector<Descriptor> unauthenticated;
  auto const begin = Clock::now();
  for (auto const& said : {std::string(), words.substr(0, 40), words}) {
    unauthenticated.push_back(connect_to(jobs[1].rendezvous));
    EXPECT_EQ(send(unauthenticated.back().get(), said.data(), said.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(said.size()));
  }
  auto const proven = knock(jobs[1]);  // but does not say who it is
  for (auto const& peer : unauthenticated) {
    char answer[4096];
    while (recv(peer.get(), answer, sizeof answer, 0) > 0) continue;
    EXPECT_GE(Clock::now() - begin, 4900ms);
  }
  EXPECT_TRUE(comes_true([&] { return !proven->receive(); }));
  EXPECT_LT(Clock::now() - begin, 15s);
  auto second = joining(jobs[1]);
  expect_none({first.get(), second.get()});
}

class UnauthenticatedPeers : public testing::TestWithParam<char const*> {};

TEST_P(UnauthenticatedPeers, do_not_keep_out_the_real_ones) {
  std::string const what = GetParam();
  auto jobs = make_jobs(4);
  auto first = joining(jobs[0]);
  auto const right = first_words(*Secret::from_hex(jobs[0].secret));
  std::string words = right;  // "replayed"
  if (what == "silent") words.clear();
  if (what == "garbage") words = std::string(1000, '\xfe');
  if (what == "web") words = "GET / HTTP/1.1\r\n\r\n";
  if (what == "oversized") words = claims_all;
  if (what == "endless") words = claims_much;
  if (what == "truncated" || what == "half") words.resize(words.size() / 2);
  if (what == "unproven") words = first_words(Secret(random_bytes()));
  if (what == "flooding") words += std::string(std::size_t{1} << 16, '\0');
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Descriptor> unauthenticated;
  for (u32 i = 0; i < 100; ++i) {
    if (what == "changed") {
      words = right;
      for (u32 j = 0; j < 3; ++j) words[random() % words.size()] = static_cast<char>(random());
    }
    unauthenticated.push_back(connect_to(jobs[1].rendezvous));
    // process 0 may have hung up by now
    (void)!send(unauthenticated.back().get(), words.data(), words.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  auto second = joining(jobs[1]), third = joining(jobs[2]);
  for (auto& peer : unauthenticated) {
    if (what == "truncated") peer = {};
    (void)!send(peer.get(), "x", 1, MSG_NOSIGNAL);
  }
  auto fourth = joining(jobs[3]);
  expect_none({first.get(), second.get(), third.get(), fourth.get()});
}
INSTANTIATE_TEST_SUITE_P(That, UnauthenticatedPeers,
                         testing::Values("silent", "garbage", "web", "truncated", "half",
                                         "oversized", "endless", "unproven", "replayed", "flooding",
                                         "changed"),
                         [](auto const& one) { return std::string(one.param); });

}  // namespace
}  // namespace meshpost
