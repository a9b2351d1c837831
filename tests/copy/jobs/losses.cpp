// If the network loses, changes or repeats messages, copies of both sides end with an error, in
// time. The same holds if a process is stopped.
#include <meshpost/copy/job_memory.hpp>

#include <csignal>
#include <random>
#include <thread>

#include "copy/jobs/jobs.hpp"
#include "support/sanitized.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::require;
using test::Role;
using test::say;
using testing::AllOf;
using testing::HasSubstr;

// All copy from and to all others, until every copy fails.
Role const copies_until_lost("copies_until_lost", [] {
  JobMemory job;
  std::vector<u8> theirs(100'000, static_cast<u8>(1 + job.process()));
  auto const field = job.expose(theirs.data(), Bytes{theirs.size()}, "field");
  std::vector<std::jthread> all;
  say("begins");
  for (u32 process = 0; process < job.processes(); ++process) {
    if (process == job.process()) continue;
    all.emplace_back([&, process] {
      std::vector<u8> here(100'000);
      auto const there = field.at(process, 0, Bytes{100'000});
      try {
        for (;;) {
          copy(here.data(), there);
          require(here == std::vector<u8>(100'000, static_cast<u8>(1 + process)), "right bytes");
          copy(there, here.data());  // the same bytes
        }
      } catch (Error const& error) {
        say(std::string("error: ") + error.what());
      }
      print_error([&] { copy(here.data(), there); });  // later ones fail too
    });
  }
  all.clear();
});

class JobCopyLosses : public testing::TestWithParam<char const*> {};

TEST_P(JobCopyLosses, end_copies_at_both_sides_in_time) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  u64 const seed = std::random_device{}() % 1'000'000;
  auto const engine = std::string("faulty:") + GetParam() + ":" + std::to_string(seed) + ":ofi:tcp";
  SCOPED_TRACE(engine);
  test::Job job("copies_until_lost", 2, {{"MESHPOST_PEER_DEADLINE", "1"}},
                [&](u32 process) -> test::Variables {
                  return {{"MESHPOST_NODE", std::to_string(process)},
                          {"MESHPOST_NET", process == seed % 2 ? engine : "ofi:tcp"}};
                });
  auto const& ended = job.wait();
  for (u32 process = 0; process < 2; ++process) {
    auto const other = "process " + std::to_string(1 - process) + " (";
    EXPECT_TRUE(ended[process].well()) << ended[process].out;
    EXPECT_THAT(ended[process].out, AllOf(HasSubstr("error: copy: "), HasSubstr(other),
                                          HasSubstr("[peer lost]"), HasSubstr("start the job")));
    EXPECT_LT(ended[process].seconds, 6 * test::timeout_factor) << ended[process].out;
  }
}
INSTANTIATE_TEST_SUITE_P(Of, JobCopyLosses,
                         testing::Values("flip", "truncate", "duplicate", "drop", "lose"),
                         [](auto const& one) { return std::string(one.param); });

// Processes of a node each that copy, as soon as all have begun.
struct CopyingJob : test::Job {
  explicit CopyingJob(u32 processes)
      : Job("copies_until_lost", processes,
            {{"MESHPOST_PEER_DEADLINE", "1"}, {"MESHPOST_NET", "ofi:tcp"}},
            [](u32 process) -> test::Variables {
              return {{"MESHPOST_NODE", std::to_string(process)}};
            }) {
    for (u32 process = 0; process < processes; ++process) wait_for(process, "begins");
  }
};

// The stopped process continues too late, and finds that the others have given it up.
TEST(JobCopyLoss, of_a_process_that_is_stopped_ends_copies_at_both_sides) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  CopyingJob job(2);
  job.kill(1, SIGSTOP);
  job.wait_for(0, "error: copy: ");
  job.kill(1, SIGCONT);
  for (auto const& one : job.wait()) {
    EXPECT_TRUE(one.well()) << one.out;
    EXPECT_THAT(one.out, AllOf(HasSubstr("error: copy: "), HasSubstr("[peer lost]")));
  }
}

// The second loss makes no event in the network: a process that is stopped has its connections.
TEST(JobCopyLoss, of_a_second_process_that_is_stopped_ends_copies_too) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  CopyingJob job(4);
  job.kill(3, SIGKILL);
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "process 3 (");
  job.kill(2, SIGSTOP);
  for (u32 process = 0; process < 2; ++process) job.wait_for(process, "process 2 (");
  job.kill(0, SIGKILL);
  job.wait_for(1, "process 0 (");
  job.kill(2, SIGKILL);
  auto const& ended = job.wait();
  EXPECT_TRUE(ended[1].well()) << ended[1].out;
}

// Losses are heard of through process 0.
TEST(JobCopyLoss, of_process_0_ends_copies_between_the_others) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  CopyingJob job(3);
  job.kill(0, SIGKILL);
  auto const& ended = job.wait();
  for (u32 const process : {1, 2}) {
    EXPECT_TRUE(ended[process].well()) << ended[process].out;
    EXPECT_THAT(ended[process].out, AllOf(HasSubstr("process 0 ("), HasSubstr("[peer lost]")));
  }
  // The other one may have found out by the engine of the first, which had ended.
  EXPECT_THAT(ended[1].out + ended[2].out, HasSubstr("nobody hears of further losses"));
}

}  // namespace
}  // namespace meshpost
