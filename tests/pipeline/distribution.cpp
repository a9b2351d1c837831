#include "pipeline/distribution.hpp"

#include <gtest/gtest.h>

#include "pipeline/relay.hpp"
#include "support/errors.hpp"

namespace meshpost::test {
namespace {

using pipelining::distribute;
using pipelining::Notice;

Schedule schedule(u32 levels, std::vector<u32> compute, bool reverse = false, bool back = true) {
  return make_schedule({levels, 10, 2, std::move(compute), reverse, back});
}

TEST(PipelineDistribution, legs_are_run_where_the_users_memory_is_else_by_the_sender) {
  // User 0 | LOAD^1 | LOAD^2 | COMP^2 | SAVE^1 | SAVE^0 | user 0
  auto const all = distribute(schedule(3, {2}), {0, 1, 2});
  EXPECT_EQ(all.buffers, (std::vector<u32>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(all.runners, (std::vector<u32>{0, 1, 2, 2, 0}));
  for (u32 const buffer : {1, 2, 4}) EXPECT_TRUE(all.exposed(buffer)) << buffer;
  for (u32 const buffer : {0, 3, 5}) EXPECT_FALSE(all.exposed(buffer)) << buffer;
  EXPECT_EQ(all.listeners(0), (std::vector<u32>{1}));
  EXPECT_EQ(all.listeners(2), (std::vector<u32>{1}));
  EXPECT_EQ(all.listeners(3), (std::vector<u32>{0}));
}

TEST(PipelineDistribution, of_one_process_exposes_nothing_and_tells_nobody) {
  auto const all = distribute(schedule(4, {1, 3}, true), {5, 5, 5, 5});
  for (u32 leg = 0; leg < all.runners.size(); ++leg) {
    EXPECT_EQ(all.runners[leg], 5);
    EXPECT_FALSE(all.crosses(leg));
    EXPECT_TRUE(all.listeners(leg).empty());
    EXPECT_FALSE(all.exposed(leg));
  }
}

TEST(PipelineDistribution, of_users_memory_in_two_processes_without_a_level_between_is_refused) {
  EXPECT_TRUE(says(error_of([] { distribute(schedule(2, {}, false, false), {0, 1}); }),
                   Kind::bad_argument, {"LOAD^1", "process 0", "process 1", "put a level"}));
  EXPECT_NO_THROW(distribute(schedule(3, {}, false, false), {0, 0, 1}));
}

TEST(PipelineNotice, survives_its_way_and_garbage_is_refused) {
  auto const bytes = Notice{7, Stage::save, 3, true, 1234567890123, false}.pack();
  auto const notice = Notice::unpack(bytes);
  EXPECT_EQ(notice.run, 7);
  EXPECT_EQ(notice.stage, Stage::save);
  EXPECT_EQ(notice.level, 3);
  EXPECT_TRUE(notice.reverse);
  EXPECT_EQ(notice.chunk, 1234567890123);
  EXPECT_FALSE(notice.failed);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(Notice::unpack(bytes.substr(0, size)), Error) << size;
}

}  // namespace
}  // namespace meshpost::test
