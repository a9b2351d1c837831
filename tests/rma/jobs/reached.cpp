// Puts and gets between nodes, out of and into devices whose memory the engine reads and writes
// itself. The host can't load or store there. Network cards do this with GPUs.
#include <cstdlib>
#include <random>

#include "support/job.hpp"

namespace meshpost {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

test::Variables node_with(u32 process, std::string const& devices, std::string const& engine) {
  return {{"MESHPOST_NODE", std::to_string(process)},
          {"MESHPOST_DEVICES", devices},
          {"MESHPOST_NET", engine}};
}

class JobReachedCpuOnly : public testing::Test {
 protected:
  void SetUp() override {
    if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  }
  std::string const seed_ = std::to_string(std::random_device{}());
  testing::ScopedTrace const trace_{__FILE__, __LINE__, "MESHPOST_TEST_SEED=" + seed_};
};

auto const both_ways = AllOf(HasSubstr("wrote into a box"), HasSubstr("wrote out of a box"));

// Roles of writes.cpp.
TEST_F(JobReachedCpuOnly, puts_and_gets_of_all_sizes_bring_what_one_after_the_other_would) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a write may store over what an earlier command stores at the same time";
#endif
  for (auto const* const engine : {"reaching:ofi", "reaching:shuffled:7:ofi"})
    for (std::vector<char const*> const& devices :
         {std::vector{"boxed:0", "boxed:0"}, {"boxed:0,1", "cpu:1", "none", "boxed:0,cpu:1"}}) {
      test::Job job(
          "sizes", static_cast<u32>(devices.size()),
          {{"MESHPOST_RANKS", devices.size() == 2 ? "2" : "1"}, {"MESHPOST_TEST_SEED", seed_}},
          [&](u32 process) { return node_with(process, devices[process], engine); });
      auto const ended = job.wait();
      test::expect_well(ended);
      EXPECT_THAT(ended[0].out, both_ways);
      EXPECT_THAT(ended[1].out, HasSubstr("wrote into a box"));
    }
}

// A process whose engine reaches its own devices writes to devices of others by way of their hosts,
// and the reverse.
TEST_F(JobReachedCpuOnly, processes_of_both_kinds_mix) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a write may store over what an earlier command stores at the same time";
#endif
  test::Job job(
      "sizes", 3, {{"MESHPOST_RANKS", "1"}, {"MESHPOST_TEST_SEED", seed_}}, [&](u32 process) {
        return node_with(process, "boxed:0",
                         std::array{"reaching:ofi", "blind:ofi", "unreaching:ofi"}[process]);
      });
  auto const ended = job.wait();
  test::expect_well(ended);
  EXPECT_THAT(ended[0].out, HasSubstr("wrote out of a box"));
  EXPECT_THAT(ended[2].out,
              AllOf(Not(HasSubstr("wrote out of a box")),
                    HasSubstr("can't write to windows of boxed:0"), HasSubstr("pinned memory")));
}

TEST_F(JobReachedCpuOnly, no_put_of_a_run_that_failed_comes_into_the_next) {
  test::Job job("flood", 2, {{"MESHPOST_RANKS", "1"}, {"MESHPOST_TEST_RUNS", "3"}},
                [](u32 process) { return node_with(process, "boxed:0", "reaching:ofi"); });
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("enough"));
}

TEST_F(JobReachedCpuOnly, long_puts_without_notifications_need_nobody_at_the_target) {
  test::Job job("unheeded", 2, {{"MESHPOST_RANKS", "1"}},
                [](u32 process) { return node_with(process, "boxed:0", "reaching:ofi"); });
  auto const ended = job.wait();
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("all is well"));
  EXPECT_THAT(ended[0].out, both_ways);
}

// libfabric's shm copies for GPUs. It is the only provider that reaches their memory without a
// network card. So registration, descriptors and order are tested, but not the card. It needs a
// libfabric built with CUDA, and a CUDA runtime under it as in tests/net/hmem.
TEST(JobReached, gpus_are_written_to_and_read_by_the_engine) {
  if (!std::getenv("MESHPOST_TEST_HMEM"))
    GTEST_SKIP() << "set MESHPOST_TEST_HMEM where libfabric copies for GPUs: tests/net/hmem";
  for (auto const* const role : {"sizes", "unheeded", "flood"}) {
    auto const seed = std::to_string(std::random_device{}());
    SCOPED_TRACE(std::string(role) + " MESHPOST_TEST_SEED=" + seed);
    test::Job job(role, 2,
                  {{"MESHPOST_RANKS", role == std::string("sizes") ? "2" : "1"},
                   {"MESHPOST_TEST_RUNS", "3"},
                   {"MESHPOST_TEST_SEED", seed}},
                  [](u32 process) {
                    // libfabric copies on the first GPU that it sees.
                    auto own = node_with(process, "cuda:0", "copying:shm");
                    own["CUDA_VISIBLE_DEVICES"] = std::to_string(process);
                    return own;
                  });
    test::expect_well(job.wait());
  }
}

}  // namespace
}  // namespace meshpost
