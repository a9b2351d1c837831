#include "environment.hpp"

#include <gmock/gmock.h>

namespace meshpost::launch {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Texts = std::vector<std::string>;

Job job_of(u32 processes, u32 nodes = 0, Texts variables = {}) {
  return {processes, nodes, "127.0.0.1:5", "ab", std::move(variables)};
}

TEST(ChildEnvironment, tells_a_process_of_its_job) {
  EXPECT_THAT(child_environment({}, job_of(3), {2, -1}),
              UnorderedElementsAre("MESHPOST_PROCESS=2", "MESHPOST_PROCESSES=3",
                                   "MESHPOST_RENDEZVOUS=127.0.0.1:5", "MESHPOST_SECRET=ab",
                                   "MESHPOST_LAUNCHER=meshpost-run"));
}

TEST(ChildEnvironment, names_the_socket_of_the_process_that_inherits_it) {
  EXPECT_THAT(child_environment({}, job_of(3), {0, 9}), testing::Contains("MESHPOST_LISTENER=9"));
}

TEST(ChildEnvironment, holds_nothing_of_an_outer_job) {
  Texts const outer{"A=1", "MESHPOST_LISTENER=3", "MESHPOST_NODE=node-4", "MESHPOST_SECRET=old",
                    "MESHPOST_PROCESS=7"};
  auto const found = child_environment(outer, job_of(2), {1, -1});
  EXPECT_EQ(found.size(), 6u);
  EXPECT_EQ(found.front(), "A=1");
  EXPECT_THAT(found, testing::Contains("MESHPOST_PROCESS=1"));
}

TEST(ChildEnvironment, keeps_other_variables_and_lets_the_users_replace_them) {
  Texts const outer{"MESHPOST_DEVICES=cpu:1", "B=2", "no sign of equality"};
  auto found = child_environment(
      outer, job_of(1, 0, {"MESHPOST_DEVICES=cpu:4", "B=", "C=x=y", "B=3"}), {0, -1});
  found.resize(4);
  EXPECT_THAT(found, ElementsAre("no sign of equality", "MESHPOST_DEVICES=cpu:4", "C=x=y", "B=3"));
}

TEST(ChildEnvironment, spreads_processes_in_blocks_over_nodes) {
  Texts nodes;
  for (u32 k = 0; k < 5; ++k) nodes.push_back(child_environment({}, job_of(5, 2), {k, -1}).back());
  EXPECT_THAT(nodes,
              ElementsAre("MESHPOST_NODE=node-0", "MESHPOST_NODE=node-0", "MESHPOST_NODE=node-0",
                          "MESHPOST_NODE=node-1", "MESHPOST_NODE=node-1"));
}

TEST(NodeOf, gives_every_node_its_share) {
  for (u32 processes = 1; processes <= 20; ++processes)
    for (u32 nodes = 1; nodes <= processes; ++nodes) {
      std::vector<u32> count(nodes);
      for (u32 k = 0; k < processes; ++k) ++count.at(node_of(job_of(processes, nodes), k));
      for (u32 const one : count) {
        EXPECT_GE(one, processes / nodes);
        EXPECT_LE(one, (processes + nodes - 1) / nodes);
      }
    }
}

}  // namespace
}  // namespace meshpost::launch
