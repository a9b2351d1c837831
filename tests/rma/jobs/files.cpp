// Limits of open files: a job has enough, or all its processes say what is missing.
#include <meshpost/meshpost.hpp>

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "meshpost/base/descriptor.hpp"
#include "support/job.hpp"

namespace meshpost {
namespace {

using test::say;
using testing::AnyOf;
using testing::HasSubstr;

constexpr char const* room =
    "MESHPOST_TEST_FILES";  // number of files that a process may still open

// Sets the soft limit, and the hard limit if the process must not raise it.
void limit_files(bool hard) {
  char const* const more = std::getenv(room);
  if (!more) return;
  using Files = std::filesystem::directory_iterator;
  auto const open =
      std::distance(Files("/proc/self/fd"), Files()) - 1;  // without the iterator's own
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = static_cast<rlim_t>(open + std::stol(more));
  if (hard) files.rlim_max = files.rlim_cur;
  setrlimit(RLIMIT_NOFILE, &files);
}

void make_world() {
  try {
    World const world;
    say("all are here");
  } catch (Error const& error) {
    say(error.what());
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  test::require(used.ru_utime.tv_sec + used.ru_stime.tv_sec < 2, "it has kept a core busy");
}

test::Role const few_files("few_files", [] {
  limit_files(true);
  make_world();
});
test::Role const soft_limit("soft_limit", [] {
  limit_files(false);
  make_world();
});

// Root may have any number of files in flight between processes.
test::Role const plain_user("plain_user", [] {
  limit_files(true);
  constexpr uid_t nobody = 65534;
  test::require(geteuid() != 0 || setuid(nobody) == 0, "setuid");
  make_world();
});

// Silent unauthenticated peers have connected first, and take all free files.
test::Role const besieged("besieged", [] {
  std::vector<Descriptor> unauthenticated;
  if (std::getenv(room)) {
    std::string const address = std::getenv("MESHPOST_RENDEZVOUS");
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port =
        htons(static_cast<in_port_t>(std::stoul(address.substr(address.rfind(':') + 1))));
    for (int i = 0; i < 8; ++i) {
      auto const& caller =
          unauthenticated.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      test::require(connect(caller.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) == 0,
                    address);
    }
  }
  limit_files(true);
  make_world();
});

test::Variables const one_device{{"MESHPOST_DEVICES", "cpu:1"}, {"MESHPOST_RANKS", "1"}};
test::Variables with(test::Variables more) {
  more.insert(one_device.begin(), one_device.end());
  return more;
}

TEST(JobFiles, have_room_where_only_the_soft_limit_is_low) {
  test::Job job("soft_limit", 6, with({{room, "2"}}));
  auto const& ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("all are here"));
}

TEST(JobFiles, of_many_processes_of_a_plain_user_are_not_all_under_way_at_once) {
  constexpr u32 processes = 24;  // which send 24 * 23 files
  test::Job job("plain_user", processes, with({{room, "70"}}));
  auto const& ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("all are here"));
}

TEST(JobFiles, that_unauthenticated_peers_take_are_taken_back_from_them) {
  test::Job job("besieged", 3, with({}), [](u32 process) {
    return process == 0 ? test::Variables{{room, "7"}} : test::Variables{};
  });
  auto const& ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) {
    EXPECT_THAT(one.out, HasSubstr("all are here"));
    if (test::sanitized) continue;
    EXPECT_LT(one.seconds, 4) << "not the 5 s that an unauthenticated peer may be silent";
  }
}

// At any place where a process runs out of files, it says so, and the others report the same.
class JobFewFiles : public testing::TestWithParam<u32> {};

TEST_P(JobFewFiles, are_named_with_their_limit_by_all_that_hear_of_it) {
  u32 const poor = GetParam();
  constexpr u32 processes = 6;
  std::string const deadline = test::sanitized ? "10" : "3";
  bool enough = false;
  for (u32 files = 2; !enough; ++files) {
    SCOPED_TRACE(testing::Message() << files << " files more");
    ASSERT_LT(files, 100u);
    test::Job job("few_files", processes, with({{"MESHPOST_START_DEADLINE", deadline}}),
                  [&](u32 process) {
                    return process == poor ? test::Variables{{room, std::to_string(files)}}
                                           : test::Variables{};
                  });
    auto const& ended = job.wait();
    test::expect_well(ended);
    auto const& own = ended[poor].out;
    enough = own.find("all are here") != std::string::npos;
    if (enough) break;
    EXPECT_THAT(own, HasSubstr("Too many open files"));
    EXPECT_THAT(own, HasSubstr("ulimit -n"));
    // A process that could not be told waits until the deadline.
    for (auto const& one : ended) {
      EXPECT_LT(one.seconds, 10 * test::timeout_factor);
      EXPECT_THAT(one.out, AnyOf(HasSubstr("ulimit -n"), HasSubstr("process 0 was not there"),
                                 HasSubstr("has not greeted within " + deadline + " s"),
                                 HasSubstr("missing: ")));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Of, JobFewFiles, testing::Values(0, 1),
                         [](auto const& one) { return "process_" + std::to_string(one.param); });

}  // namespace
}  // namespace meshpost
