// Which processes of a node map each other's memory, found by trying, and the domains that follow.
#include "world/reach.hpp"

#include <gmock/gmock.h>

#include "meshpost/world/spaces.hpp"
#include "support/boxed.hpp"
#include "support/sink.hpp"
#include "world/players.hpp"
#include "world/process_group.hpp"

namespace meshpost {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Refusal refusal(u32 process, u32 owner, std::string const& kind = "cuda") {
  return {process, owner, kind + ":0", kind, {Kind::bad_environment, "map it", "no", "ask"}};
}

TEST(Reach, is_divided_so_that_all_of_a_group_map_each_other) {
  EXPECT_THAT(groups_that_map({}, "cuda", 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(groups_that_map({refusal(0, 2)}, "cuda", 3), ElementsAre(0, 0, 1)) << "1 maps both";
  EXPECT_THAT(groups_that_map({refusal(2, 0)}, "cuda", 3), ElementsAre(0, 0, 1)) << "back";
  EXPECT_THAT(groups_that_map({refusal(0, 1), refusal(3, 2)}, "cuda", 4), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(groups_that_map({refusal(0, 1), refusal(0, 2), refusal(1, 2)}, "cuda", 4),
              ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(groups_that_map({refusal(0, 1)}, "other", 2), ElementsAre(0, 0));
}

TEST(Reach, that_is_missing_is_warned_of_once_with_the_remedy) {
  std::vector<std::string> const names{"process 0 (a)", "process 1 (a)", "process 2 (b)"};
  EXPECT_TRUE(slow_paths({}, {}, names).empty());
  auto const warnings = slow_paths({refusal(1, 0), refusal(0, 1)}, {{2, 0, "it sulks"}}, names);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0],
              AllOf(HasSubstr("process 1 (a) can't map memory of cuda:0 of process 0 (a) (and 1 "
                              "more pair likewise): map it: no;"),
                    HasSubstr("slower; ask")));
  EXPECT_THAT(warnings[1],
              AllOf(HasSubstr("process 2 (b) and process 0 (a) run on one host"),
                    HasSubstr("it sulks"), HasSubstr("one user"), HasSubstr("--network=host"),
                    HasSubstr("MESHPOST_NODE"), testing::Not(HasSubstr("more"))));
}

// For each process, all devices: '+' if it reaches the device, '-' if not. And the warnings.
struct Found {
  std::vector<std::string> reached, warnings;
};
Found find(std::vector<Job> const& jobs, std::string const& refused, bool apart = false) {
  test::register_boxed();
  setenv("MESHPOST_TEST_REFUSED", refused.c_str(), 1);
  test::Listener const listener;
  Found found{std::vector<std::string>(jobs.size()), {}};
  test::expect_none(test::play(jobs, [&](Processes& processes) {
    u32 const me = processes.number();
    test::play_process(me);
    ProcessGroup const group({&processes, [](Processes*) {}}, processes.take_channel());
    auto const layout = make_layout(me == 3 ? "none" : "boxed:0,1", 1, apart && me == 0, group, {});
    EXPECT_EQ(group.node().hosts(), std::vector(jobs.size(), group.node().hosts().front()));
    bool differs = false;
    for (u32 device = 0; device < layout.device_count(); ++device) {
      bool const far = layout.own_count() != 0 && layout.far(0, device);
      found.reached[me] += far ? '-' : '+';
      differs |= far;
    }
    EXPECT_TRUE(layout.far_processes || !differs);
    // The result holds for the heap: nobody maps memory that it was refused.
    Spaces spaces(layout);
    group.extend(spaces, layout, {}, Bytes{2 << 20});
  }));
  found.warnings = listener.warnings();
  unsetenv("MESHPOST_TEST_REFUSED");
  return found;
}

TEST(Reach, between_processes_is_found_by_trying) {
  auto const [reached, warnings] = find(test::make_jobs(4), "");
  EXPECT_THAT(reached, ElementsAre("++++++", "++++++", "++++++", "++++++"));
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

TEST(Reach, that_is_refused_in_one_direction_parts_two_processes_and_is_warned_of_once) {
  auto const [reached, warnings] = find(test::make_jobs(4), "0:2");
  EXPECT_THAT(reached, ElementsAre("++++--", "++++--", "----++", "++++++")) << "1 maps both";
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              AllOf(HasSubstr("process 0 ("), HasSubstr("can't map memory of boxed:0 of process 2"),
                    HasSubstr("map a box: it is boxed in"), HasSubstr("open the box")));
}

TEST(Reach, of_devices_that_can_not_be_shared_at_all_is_their_process_alone) {
  auto const [reached, warnings] = find(test::make_jobs(4), "1:1");
  EXPECT_THAT(reached, ElementsAre("++--++", "--++--", "++--++", "++++++"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], AllOf(HasSubstr("can't map memory of boxed:0 of process 1"),
                                 HasSubstr("share a box: it is boxed in")));
}

TEST(Reach, is_not_tried_between_devices_that_are_to_be_apart) {
  auto const [reached, warnings] = find(test::make_jobs(2), "0:1,1:0,0:0", true);
  EXPECT_THAT(reached, ElementsAre("+---", "--++"));
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

TEST(Reach, is_not_tried_between_nodes_and_requested_nodes_are_not_warned_of) {
  auto jobs = test::make_jobs(4);
  jobs[0].node = jobs[2].node = "other";
  auto const [reached, warnings] = find(jobs, "0:1,1:0,1:2");
  EXPECT_THAT(reached, ElementsAre("++--++", "--++--", "++--++", "++++++"));
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

}  // namespace
}  // namespace meshpost
