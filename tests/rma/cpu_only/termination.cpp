// Messages between processes during a run. Threads of this process act as the processes.
#include "rma/runs/supervising/termination.hpp"

#include "world/players.hpp"

namespace meshpost::detail {
namespace {

TerminationDetector::Own ended_here() {
  TerminationDetector::Own own;
  own.ended = true;
  return own;
}

TEST(TerminationDetectorCpuOnly, takes_a_process_that_has_left_for_one_that_will_not_answer) {
  test::expect_none(test::play(test::make_jobs(2), [&](Processes& processes) {
    ProcessGroup const group({&processes, [](Processes*) {}}, processes.take_channel());
    if (processes.number() == 1) return;  // before its ranks have ended
    TerminationDetector detector(group, 1, std::chrono::milliseconds(0));
    TerminationDetector::Verdict verdict;
    EXPECT_TRUE(test::comes_true([&] {
      verdict = detector.poll(ended_here());
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

TEST(TerminationDetectorCpuOnly, ends_a_run_with_one_reason_everywhere) {
  test::expect_none(test::play(test::make_jobs(3), [&](Processes& processes) {
    ProcessGroup const group({&processes, [](Processes*) {}}, processes.take_channel());
    TerminationDetector detector(group, 1, std::chrono::milliseconds(0));
    if (processes.number() == 2) detector.poison(Reason::failed);
    TerminationDetector::Verdict verdict;
    EXPECT_TRUE(test::comes_true([&] {
      verdict = detector.poll(ended_here());
      return verdict.over;
    }));
    EXPECT_EQ(verdict.poison, Reason::failed);
    group.exchange("end the test");  // no process leaves before
  }));
}

}  // namespace
}  // namespace meshpost::detail
