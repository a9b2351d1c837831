// Threads that share a few microseconds of work: each piece is done once, by the first thread that
// takes it.
#include "base/prompt_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <vector>

#include "base/no_threads.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;

// Each round writes plain words: the thread sanitizer checks that the caller may read them.
void expect_each_piece_once(PromptThreads& threads, u32 pieces, int rounds, unsigned seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> done(pieces);
    int const told = round;  // by the caller, to all
    threads.each(pieces, [&](u32 piece) { done[piece] += told + 1; });
    ASSERT_EQ(done, std::vector<int>(pieces, round + 1)) << "round " << round << ", seed " << seed;
    if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
  }
}

TEST(ThreadsForPromptWork, do_each_piece_once_whether_they_poll_or_sleep) {
  auto const seed = std::random_device()();
  for (auto const attentive : {0us, 20us, 1000us}) {
    PromptThreads threads("share work", attentive);
    threads.grow(3);
    EXPECT_EQ(threads.count(), 3u);
    expect_each_piece_once(threads, 4, 2000, seed);
    expect_each_piece_once(threads, 2, 200, seed);
  }
}

TEST(ThreadsForPromptWork, leave_to_the_caller_what_there_is_no_thread_for) {
  PromptThreads threads("share work", 20us);
  expect_each_piece_once(threads, 3, 10, 1);
  threads.each(0, [](u32) { FAIL() << "there is no piece"; });
  test::NoThreads const none("share work");
  threads.grow(2);
  EXPECT_EQ(threads.count(), 0u);
  expect_each_piece_once(threads, 3, 10, 1);
}

TEST(ThreadsForPromptWork, end_at_once_when_nobody_needs_them) {
  for (int i = 0; i < 50; ++i) {
    PromptThreads threads("share work", i % 2 == 0 ? 1000us : 0us);
    threads.grow(2);
    threads.grow(1);  // more exist already
    if (i % 3 == 0) expect_each_piece_once(threads, 3, 1, 1);
  }
}

}  // namespace
}  // namespace meshpost
