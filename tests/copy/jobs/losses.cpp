// What the network loses, changes or repeats ends the copies of both sides with an error, in time;
// so does a process that is stopped.
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

// All copy from and to all others, until nothing goes.
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
          copy(there, here.data());  // what is there
        }
      } catch (Error const& error) {
        say(std::string("error: ") + error.what());
      }
      print_error([&] { copy(here.data(), there); });  // later ones too
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
    EXPECT_LT(ended[process].seconds, 6 * test::patience_times) << ended[process].out;
  }
}
INSTANTIATE_TEST_SUITE_P(Of, JobCopyLosses,
                         testing::Values("flip", "truncate", "duplicate", "drop", "lose"),
                         [](auto const& one) { return std::string(one.param); });

// The others can't tell each other of lost messages any more, so those between them end too.
TEST(JobCopyLoss, of_process_0_ends_all_copies_between_nodes_and_names_it) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  test::Job job(
      "copies_until_lost", 3, {{"MESHPOST_NET", "ofi:tcp"}},
      [](u32 process) -> test::Variables { return {{"MESHPOST_NODE", std::to_string(process)}}; });
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
  job.kill(0);
  auto const& ended = job.wait();
  for (u32 process = 1; process < 3; ++process) {
    EXPECT_TRUE(ended[process].well()) << ended[process].out;
    EXPECT_THAT(ended[process].out,
                AllOf(HasSubstr("error: copy: process 0 ("), HasSubstr("[peer lost]")));
    EXPECT_LT(ended[process].seconds, 6 * test::patience_times) << ended[process].out;
  }
  // The other may find the first one's engine closed before it looks.
  EXPECT_THAT(ended[1].out + ended[2].out,
              HasSubstr("passes on what copy servers say of losses, so none can go on"));
}

// It goes on when it is too late, and finds that it has been given up.
TEST(JobCopyLoss, of_a_process_that_is_stopped_ends_copies_at_both_sides) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  test::Job job(
      "copies_until_lost", 2, {{"MESHPOST_PEER_DEADLINE", "1"}, {"MESHPOST_NET", "ofi:tcp"}},
      [](u32 process) -> test::Variables { return {{"MESHPOST_NODE", std::to_string(process)}}; });
  for (u32 process = 0; process < 2; ++process) job.wait_for(process, "begins");
  job.kill(1, SIGSTOP);
  job.wait_for(0, "error: copy: ");
  job.kill(1, SIGCONT);
  for (auto const& one : job.wait()) {
    EXPECT_TRUE(one.well()) << one.out;
    EXPECT_THAT(one.out, AllOf(HasSubstr("error: copy: "), HasSubstr("[peer lost]")));
  }
}

}  // namespace
}  // namespace meshpost
