// Processes of one host that could share memory and are refused: a message says that the job is
// slower than necessary.
#include <grp.h>
#include <unistd.h>

#include "support/boxed.hpp"
#include "support/everything.hpp"
#include "support/job.hpp"

namespace meshpost {
namespace {

using test::require;
using test::Role;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Number of times that a text occurs in the output of the processes.
u32 times(std::vector<test::Ended> const& all, std::string const& text) {
  u32 count = 0;
  for (auto const& one : all)
    for (auto at = one.out.find(text); at != one.out.npos; at = one.out.find(text, at + 1)) ++count;
  return count;
}

struct TellAll {  // their numbers
  Window<u32> numbers;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const n = self.size();
    auto const mine = numbers.local(self);
    if (self.thread() == 0) mine[n] = self.id() + 1;
    for (u32 to = 0; to < n; ++to)
      self.put_notify(numbers.at(RankId{to}, self.id()), mine.subspan(n, 1), Tag{0});
    self.wait(numbers, Tag{0}, n);
    for (u32 from = 0; from < n; ++from)
      if (mine[from] != from + 1) self.fail("another number came");
    self.barrier();
  }
};

Role const refused("refused", [] {
  test::register_boxed();
  World world(WorldOptions{});
  world.run(TellAll{world.window<u32>(world.size() + 1, Tags{1}, "numbers")});
  auto const window = world.window<u64>(200'000, Tags{0});  // the heap grows
  u64 const mine = world.process();
  if (world.process() == 1)
    for (u32 r = 0; r < world.size(); ++r) window.write(RankId{r}, 0, std::span(&mine, 1));
  world.window<int>(1);  // when it is there, it is written
  for (u32 r = 0; r < world.size(); ++r) require(window.read(RankId{r})[0] == 1, "what 1 wrote");
});

struct Refused {
  char const* pairs;
  std::vector<char const*> devices;
};
void PrintTo(Refused const& one, std::ostream* out) { *out << one.pairs; }

class JobRefusedCpuOnly : public testing::TestWithParam<Refused> {};

// As for GPUs without peer access, or in a container that refuses to share their memory.
TEST_P(JobRefusedCpuOnly, to_map_memory_of_devices_goes_by_the_host_and_says_so_once) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  auto const& [pairs, devices] = GetParam();
  test::Job job(
      "refused", static_cast<u32>(devices.size()),
      {{"MESHPOST_RANKS", "1"}, {"MESHPOST_TEST_REFUSED", pairs}, {"MESHPOST_NODE", ""}},
      [&](u32 process) -> test::Variables { return {{"MESHPOST_DEVICES", devices[process]}}; });
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_EQ(times(all, "can't map memory of"), 1u);
  EXPECT_THAT(all[0].out, AllOf(HasSubstr("it is boxed in; their ranks reach each other through "
                                          "the host, which is slower; open the box"),
                                Not(HasSubstr("run on one host"))));
}
INSTANTIATE_TEST_SUITE_P(
    Of, JobRefusedCpuOnly,
    testing::Values(Refused{"0:1", {"boxed:0", "boxed:0*2"}},
                    Refused{"0:2", {"boxed:0", "boxed:0", "boxed:0"}},
                    Refused{"1:1", {"boxed:0,cpu:1", "boxed:0,cpu:1", "none", "boxed:0"}}));

// Processes of other users are recognized at their acceptors; they have the job's secret.
Role const other_user("other_user", [] {
  char const* const user = std::getenv("MESHPOST_TEST_USER");
  if (user) {
    auto const id = static_cast<uid_t>(std::stoul(user));
    require(setgroups(0, nullptr) == 0 && setgid(id) == 0 && setuid(id) == 0, "another user");
  }
  World world(WorldOptions{});
  test::try_everything(world);
});

std::vector<test::Ended> run_as(std::vector<char const*> const& users,
                                test::Variables const& variables) {
  test::Variables all{
      {"MESHPOST_RANKS", "2"}, {"MESHPOST_DEVICES", "cpu:1"}, {"MESHPOST_NET", "ofi:tcp"}};
  all.insert(variables.begin(), variables.end());
  test::Job job("other_user", static_cast<u32>(users.size()), all,
                [&](u32 process) -> test::Variables {
                  auto const* const user = users[process];
                  return user ? test::Variables{{"MESHPOST_TEST_USER", user}} : test::Variables{};
                });
  auto ended = job.wait();
  test::expect_well(ended);
  return ended;
}

TEST(JobPartedCpuOnly, of_two_users_on_one_host_says_once_that_and_why_it_is_slower) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  auto const all = run_as({nullptr, "65534", nullptr, "65534"}, {{"MESHPOST_NODE", ""}});
  EXPECT_EQ(times(all, "run on one host and share no memory"), 1u);
  EXPECT_THAT(all[0].out, AllOf(HasSubstr("process 1 ("), HasSubstr("process 0 ("),
                                HasSubstr("likewise"), HasSubstr("it is another user's"),
                                HasSubstr("run all processes of a host as one user")));
}

TEST(JobPartedCpuOnly, by_request_says_nothing) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job(
      "other_user", 2, {{"MESHPOST_RANKS", "2"}, {"MESHPOST_DEVICES", "cpu:1"}},
      [](u32 process) -> test::Variables { return {{"MESHPOST_NODE", std::to_string(process)}}; });
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_EQ(times(all, "share no memory"), 0u);
}

}  // namespace
}  // namespace meshpost
