// A watcher measures time by its own polls, so that a process that was stopped is not late.
#include "base/deadline.hpp"

#include <gtest/gtest.h>

namespace meshpost {
namespace {

using namespace std::chrono_literals;

class DeadlineOf : public testing::Test {
 protected:
  /// Polls every `pause`, until it ends or for `most` polls. \returns number of polls
  static int looks(Deadline& timeout, Deadline::Clock::time_point& now,
                   Deadline::Milliseconds pause, int most) {
    for (int i = 1; i <= most; ++i)
      if (timeout.ends(now += pause)) return i;
    return 0;
  }
  Deadline::Clock::time_point now = Deadline::Clock::now() + 1h;
};

TEST_F(DeadlineOf, a_watcher_that_looks_ends_when_nothing_has_changed_for_its_length) {
  Deadline timeout(1s);
  timeout.renew(now);
  EXPECT_EQ(looks(timeout, now, 10ms, 1000), 101);
}

TEST_F(DeadlineOf, a_process_that_was_stopped_for_hours_counts_some_milliseconds_of_them) {
  Deadline timeout(1s);
  timeout.renew(now);
  EXPECT_EQ(looks(timeout, now, 10ms, 50), 0);
  for (int stops = 0; stops < 3; ++stops) EXPECT_FALSE(timeout.ends(now += 5h));
  EXPECT_EQ(looks(timeout, now, 10ms, 1000), 51 - 3 * 5);
}

TEST_F(DeadlineOf, a_process_that_was_stopped_when_it_began_counts_no_more) {
  Deadline timeout(100ms);
  EXPECT_FALSE(timeout.ends(now += 5h));
}

TEST_F(DeadlineOf, a_watcher_that_looks_seldom_is_told_so) {
  Deadline timeout(1s, 300ms);
  timeout.renew(now);
  EXPECT_EQ(looks(timeout, now, 250ms, 100), 5);
}

TEST_F(DeadlineOf, progress_begins_anew) {
  Deadline timeout(1s);
  for (u64 progress = 1; progress < 200; ++progress)
    for (int i = 0; i < 20; ++i) ASSERT_FALSE(timeout.ends(progress, now += 40ms));
  // The first of those polls started again: 19 of them count, and together with these 25 they make
  // 1 s.
  for (int i = 0; i < 6; ++i) ASSERT_FALSE(timeout.ends(199, now += 40ms));
  EXPECT_TRUE(timeout.ends(199, now += 40ms));
}

TEST_F(DeadlineOf, length_zero_never_ends) {
  Deadline timeout(0ms);
  EXPECT_EQ(looks(timeout, now, 50ms, 100'000), 0);
}

}  // namespace
}  // namespace meshpost
