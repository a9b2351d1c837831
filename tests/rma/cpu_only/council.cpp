// Messages between processes during a run. Threads of this process act as the processes.
#include "rma/runs/supervising/council.hpp"

#include "world/players.hpp"

namespace meshpost::detail {
namespace {

Council::Own ended_here() {
  Council::Own own;
  own.ended = true;
  return own;
}

TEST(CouncilCpuOnly, takes_a_process_that_has_left_for_one_that_will_not_answer) {
  test::expect_none(test::play(test::make_jobs(2), [&](Processes& processes) {
    Peers const peers({&processes, [](Processes*) {}}, processes.take_channel());
    if (processes.number() == 1) return;  // before its ranks have ended
    Council council(peers, 1, std::chrono::milliseconds(0));
    Council::Verdict verdict;
    EXPECT_TRUE(test::comes_true([&] {
      verdict = council.sit(ended_here());
      return verdict.over;
    }));
    EXPECT_EQ(verdict.poison, Reason::lost);
    auto const gone = processes.gone();
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->process, 1u);
    EXPECT_TRUE(gone->left);
    EXPECT_FALSE(processes.lost());
  }));
}

TEST(CouncilCpuOnly, ends_a_run_with_one_reason_everywhere) {
  test::expect_none(test::play(test::make_jobs(3), [&](Processes& processes) {
    Peers const peers({&processes, [](Processes*) {}}, processes.take_channel());
    Council council(peers, 1, std::chrono::milliseconds(0));
    if (processes.number() == 2) council.poison(Reason::failed);
    Council::Verdict verdict;
    EXPECT_TRUE(test::comes_true([&] {
      verdict = council.sit(ended_here());
      return verdict.over;
    }));
    EXPECT_EQ(verdict.poison, Reason::failed);
    peers.exchange("end the test");  // no process leaves before
  }));
}

}  // namespace
}  // namespace meshpost::detail
