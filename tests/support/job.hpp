#pragma once
// Jobs of several processes for tests: this program, started again with a role.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <chrono>

#include <csignal>
#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"
#include "meshpost/rma/world.hpp"
#include "support/sanitized.hpp"

namespace meshpost::test {

/// Work of a process of a test's job; exit status 0 means success. Defined at namespace scope:
/// `Role const ring("ring", [] { ...; });`
class Role {
 public:
  Role(std::string name, std::function<void()> body);
};

/// Runs a role. \throws the exceptions of the role
void play(std::string const& role);

/// For roles that any launcher may start: sets the options of their World, unless they are set
/// already.
WorldOptions world_options();
void let_world_options_be(std::function<WorldOptions()> options);

/// For roles: writes a line to standard output at once, because the test waits for it.
void say(std::string const& text);
/// For roles: ends the process with status 1, and prints where and why.
void require(bool holds, std::string const& what,
             std::source_location where = std::source_location::current());
/// For roles: prints the exception of `body` as "error: ..." on standard output. Fails if there is
/// none.
void print_error(std::function<void()> const& body);

struct Ended {
  int status = 0;  ///< of waitpid
  std::string out;
  double seconds = 0;  ///< from the start of the job, or the last kill(), to its end

  bool well() const { return status == 0; }
  bool killed() const { return WIFSIGNALED(status); }
};

using Variables = std::map<std::string, std::string>;

/// The hosts of the test, "NAME:COUNT" (hosts.sh): process k of a job runs on host k % COUNT + 1.
/// Without it all processes run on this host.
inline constexpr char const* hosts_variable = "MESHPOST_TEST_HOSTS";
/// The address of the test program that the processes of its jobs reach.
std::string own_host();

class Job {
 public:
  /// Starts `processes` processes in `role`; `own` gives each variables of its own.
  Job(std::string const& role, u32 processes, Variables const& all = {},
      std::function<Variables(u32 process)> const& own = {});
  ~Job();  ///< kills remaining processes
  Job(Job const&) = delete;
  Job& operator=(Job const&) = delete;

  /// Returns once the output of `process` holds `text`, and returns the output until then. Fails
  /// the test after 30 s, with sanitizers after 90 s.
  std::string const& wait_for(u32 process, std::string const& text);
  void kill(u32 process, int signal = SIGKILL);
  /// Returns when all have ended. After `limit` it kills remaining processes, and fails the test.
  std::vector<Ended> const& wait(std::chrono::seconds limit = std::chrono::seconds(180));

 private:
  struct Child {
    pid_t pid = -1;
    int pipe = -1;
    bool over = false;
    Ended ended;
  };
  void read(int milliseconds);
  void reap(Child& child);

  std::vector<Child> children_;
  std::chrono::steady_clock::time_point since_;
};

/// All ended with status 0; else the test fails with their output.
void expect_well(std::vector<Ended> const& all);
/// Matches if the pieces follow each other in the output of a process.
void expect_in_order(std::string const& out, std::vector<std::string> const& pieces);

}  // namespace meshpost::test
