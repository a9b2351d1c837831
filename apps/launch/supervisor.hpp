#pragma once
#include <signal.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "environment.hpp"
#include "guard.hpp"
#include "options.hpp"
#include "output.hpp"
#include "poller.hpp"
#include "signals.hpp"
#include "typed.hpp"

namespace meshpost::launch {

/// Runs one job: starts its processes, forwards signals and output, ends all when one fails.
class Supervisor {
 public:
  explicit Supervisor(Options const& options);
  ~Supervisor();  ///< no process remains, whatever happened
  Supervisor(Supervisor const&) = delete;
  Supervisor& operator=(Supervisor const&) = delete;

  /// Returns the exit status of the job.
  /// \throws NotStarted when there is none, since its first process could not be started
  int run();

 private:
  struct Member {
    u32 number;
    pid_t pid;
    bool ended;  // but not reaped: until the job's end its number stays its own
  };
  // How far the end of the job has come; each step waits for `next_step_`.
  enum class Ending { none, noticed, grace, terminated, killed };

  void start_all(rlimit const& files);
  void loop();
  void collect(pid_t first);
  void collect(Member& member);
  void failed(Member const& member, siginfo_t const& how);
  void announce();
  void on_signals();
  void on_signal(int number);
  void on_time();
  void on_broken_output();
  void stop_and_continue();
  void terminate();
  void kill();
  void signal_all(int number);
  void give_up();
  std::string still_running() const;

  Options const& options_;
  Signals signals_;
  Guard guard_;
  Output output_;
  Typed typed_;
  std::vector<Fd> logs_;
  std::vector<Member> members_;
  u32 running_ = 0;
  Ending ending_ = Ending::none;
  std::optional<int> status_;  // of the job, once it has failed
  struct {
    bool by_signal;
    std::string said;  // empty: nothing
  } first_{};          // failure
  std::optional<Clock::time_point> next_step_, timeout_;
  std::set<int> passed_;  // signals that the processes have got from the user
  bool broken_ = false;   // standard output
};

}  // namespace meshpost::launch
