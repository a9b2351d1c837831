// Copies when the network does not return to its caller (net::Faulty), and a process is lost.
// libfabric's shm does so if a process was killed while it held a lock.
#include <unistd.h>
#include <meshpost/meshpost.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "copy/jobs/jobs.hpp"
#include "net/faulty.hpp"
#include "support/sanitized.hpp"
#include "support/stale.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::Role;
using test::say;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// All copy from and to all others. In process 0 the network hangs with a message with bytes for
// `theirs` or `here`. These must not be written after the copies have ended with an error.
Role const copies_that_hang("copies_that_hang", [] {
  std::vector<u8> theirs(100'000, 1), mine(100'000, 2);
  std::vector<std::vector<u8>> here(3, std::vector<u8>(100'000));
  {
    JobMemory job;
    auto const field = job.expose(theirs.data(), Bytes{theirs.size()}, "field");
    std::atomic<bool> over{false};
    auto const exchange_with = [&](u32 process) {
      try {
        while (!over) {
          auto const get = copy_async(here[process].data(), field.at(process, 0, Bytes{100'000}));
          copy(field.at(process, 0, Bytes{100'000}), mine.data());
        }
      } catch (Error const& error) {
        std::printf("error: %s\n", error.what());
      }
      over = true;
    };
    std::printf("number %d\n", getpid());
    say("begins");
    std::vector<std::jthread> all;
    for (u32 process = 0; process < 3; ++process)
      if (process != job.process()) all.emplace_back([&, process] { exchange_with(process); });
    all.clear();
    print_error([&] { copy(here[0].data(), field.at(1, 0, Bytes{1})); });
    print_error([&] { job.expose(nullptr, Bytes{}, "more"); });
  }
  say("over");
  std::ranges::fill(theirs, u8{3});
  for (auto& one : here) std::ranges::fill(one, u8{3});
  if (std::getenv("MESHPOST_TEST_STAYS"))
    std::this_thread::sleep_for(net::Faulty::hangs - std::chrono::milliseconds(400));
  auto const untouched = [](std::vector<u8> const& bytes) {
    return std::ranges::all_of(bytes, [](u8 byte) { return byte == 3; });
  };
  test::require(untouched(theirs) && std::ranges::all_of(here, untouched), "nothing comes late");
  say("went on");
});

test::Job start(bool stays) {
  test::Variables all{{"TSAN_OPTIONS", "report_thread_leaks=0"}};  // threads are meant to leak
  if (stays) all["MESHPOST_TEST_STAYS"] = "1";
  return {"copies_that_hang", 3, all, [](u32 process) -> test::Variables {
            return {{"MESHPOST_NODE", std::to_string(process)},
                    {"MESHPOST_NET", process == 0 ? "faulty:hang:7:ofi:tcp" : "ofi:tcp"}};
          }};
}

TEST(JobCopyHang, of_the_network_after_a_loss_ends_copies_within_two_seconds) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  test::Job ends = start(false), stays = start(true);  // stays: until the thread has returned
  for (auto* const job : {&ends, &stays})
    for (u32 process = 0; process < 3; ++process) job->wait_for(process, "begins");
  // Each at its own time: a thread hangs for 3 s.
  auto const kill_when_it_hangs = [](test::Job& job) {
    job.wait_for(0, "hangs, as it was told to");
    auto const killed = std::chrono::steady_clock::now();
    job.kill(1);
    for (u32 const process : {0, 2}) job.wait_for(process, "over");
    EXPECT_LT(std::chrono::steady_clock::now() - killed, test::before_it_comes_back);
  };
  std::thread other(kill_when_it_hangs, std::ref(stays));
  kill_when_it_hangs(ends);
  other.join();
  for (auto* const job : {&ends, &stays}) {
    auto const& ended = job->wait();
    for (u32 const process : {0, 2}) {
      EXPECT_TRUE(ended[process].well()) << ended[process].out;
      EXPECT_THAT(ended[process].out,
                  AllOf(HasSubstr("[peer lost]"), HasSubstr("process 1 ("), HasSubstr("went on")));
      // Process 2 may find process 0's engine closed before process 0 tells it why.
      auto const hangs =
          AllOf(HasSubstr("of process 0 ("), HasSubstr("does not come back from faulty ofi"));
      auto const closed = AllOf(HasSubstr("process 0 ("), HasSubstr("is gone"));
      if (process == 0) EXPECT_THAT(ended[process].out, hangs);
      else EXPECT_THAT(ended[process].out, AnyOf(hangs, closed));
    }
  }
}

// Over libfabric's shm, which reports no loss, and leaves a file of 16 MiB.
TEST(JobCopyLoss, over_shared_memory_ends_all_copies_and_leaves_no_file) {
  if (!test::network) GTEST_SKIP() << "needs libfabric";
  test::Job job(
      "copies_that_hang", 3, {{"MESHPOST_NET", "ofi:shm"}},
      [](u32 process) -> test::Variables { return {{"MESHPOST_NODE", std::to_string(process)}}; });
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  job.kill(1);
  auto const& ended = job.wait();
  for (u32 process = 0; process < 3; ++process) {
    auto const& out = ended[process].out;
    auto const number = out.substr(out.find("number ") + 7);
    auto const file = "/dev/shm/" + number.substr(0, number.find('\n')) + ":0:0";
    EXPECT_TRUE(test::is_removed(file)) << file;
    if (process == 1) continue;
    EXPECT_TRUE(ended[process].well()) << out;
    EXPECT_THAT(out, AllOf(HasSubstr("[peer lost]"), HasSubstr("process 1 (")));
    EXPECT_LT(ended[process].seconds, 3 * test::timeout_factor);
  }
}

}  // namespace
}  // namespace meshpost
