#include "hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "meshpost/base/error.hpp"
#include "plan.hpp"

namespace meshpost::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Hosts, have_slots_where_somebody_says_so) {
  EXPECT_THAT(read_hosts("a,root@b:4,[fe80::1]:2,::1"),
              ElementsAre(Host{"a", 0}, Host{"root@b", 4}, Host{"fe80::1", 2}, Host{"::1", 0}));
}

TEST(Hosts, that_are_named_again_have_the_slots_of_both) {
  EXPECT_THAT(read_hosts("a,b,a"), ElementsAre(Host{"a", 2}, Host{"b", 0}));
  EXPECT_THAT(read_hosts("a:3,a"), ElementsAre(Host{"a", 4}));
}

TEST(Hosts, of_a_file_are_written_as_for_mpirun) {
  auto const path = testing::TempDir() + "meshpost-hosts";
  std::ofstream(path) << "# all\n\na slots=4 max_slots=8\n b:2 # two\nc\n";
  EXPECT_THAT(read_hostfile(path), ElementsAre(Host{"a", 4}, Host{"b", 2}, Host{"c", 0}));
  std::ofstream(path) << "a\nb ports=4\n";
  try {
    read_hostfile(path);
    FAIL();
  } catch (Error const& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 2: 'ports=4' is not understood"));
  }
}

TEST(Place, gives_blocks_where_nobody_says_what_a_host_takes) {
  std::vector<Host> const hosts{{"a"}, {"b"}, {"c"}};
  EXPECT_THAT(place(hosts, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(place(hosts, 2), ElementsAre(0, 1));
  EXPECT_THAT(place(hosts, 8), ElementsAre(0, 0, 0, 1, 1, 1, 2, 2));
}

TEST(Place, fills_slots_in_order) {
  std::vector<Host> const hosts{{"a", 2}, {"b"}, {"c", 3}};
  EXPECT_THAT(place(hosts, 0), ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THAT(place(hosts, 3), ElementsAre(0, 0, 1));
  EXPECT_THROW(place(hosts, 7), Error);
}

TEST(Meeting, is_a_host_a_port_or_both) {
  auto const read = [](char const* text) {
    Plan plan;
    take_meeting(plan, text);
    return std::pair(plan.meeting_host, plan.meeting_port);
  };
  EXPECT_EQ(read("node-a"), std::pair(std::string("node-a"), 0));
  EXPECT_EQ(read("10.0.0.1:7000"), std::pair(std::string("10.0.0.1"), 7000));
  EXPECT_EQ(read(":7000"), std::pair(std::string(), 7000));
  EXPECT_EQ(read("fe80::1"), std::pair(std::string("fe80::1"), 0));
  EXPECT_EQ(read("[fe80::1]:7000"), std::pair(std::string("[fe80::1]"), 7000));
  for (auto const* wrong : {":", ":x", "a:0", "a:65536", "a:1x"}) EXPECT_THROW(read(wrong), Error);
}

TEST(Way, by_ssh_asks_nothing_and_by_others_is_as_it_was_given) {
  EXPECT_THAT(way_from(" srun  -w "), ElementsAre("srun", "-w"));
  EXPECT_THAT(way_from("/usr/bin/ssh -p 7").at(1), "-p");
  EXPECT_THAT(way_from("ssh"), testing::Contains("BatchMode=yes"));
  EXPECT_THROW(way_from(" "), Error);
}

}  // namespace
}  // namespace meshpost::launch
