#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "here.hpp"
#include "options.hpp"
#include "output.hpp"
#include "place.hpp"
#include "signals.hpp"
#include "typed.hpp"

namespace meshpost::launch {

/// Runs one job: starts its processes, forwards signals and output, ends all when one fails.
class Supervisor : private Reports {
 public:
  explicit Supervisor(Options const& options);

  /// Returns the exit status of the job.
  /// \throws NotStarted when there is none, since its first process could not be started
  int run();

 private:
  struct Member {
    pid_t pid;  // on its host; 0: not yet started
    bool over;  // it has ended, or nobody knows
  };
  // How far the end of the job has come; each step waits for `next_step_`.
  enum class Ending { none, noticed, grace, terminated, killed, cut };

  void started(u32 process, pid_t pid) override;
  void printed(u32 process, int stream, std::string_view bytes) override;
  void printed_all(u32 process, int stream) override;
  bool full(int stream) const override;
  void ended(u32 process, End end) override;
  void input_taken() override { typed_.taken(); }
  void lost(std::vector<u32> const& processes, std::string const& why, int status) override;
  void say(std::string const& line) override { output_.pass_on(line); }

  void start_here();
  void start_on_hosts();
  void loop();
  void failed(u32 process, End how);
  void announce();
  void on_signals();
  void on_signal(int number);
  void on_time();
  void on_next_step();
  void on_broken_output();
  void stop_and_continue();
  void terminate();
  void kill();
  void give_up();
  std::string still_running() const;

  Options const& options_;
  rlimit files_;  // limits as they were
  Signals signals_;
  Output output_;
  Typed typed_;
  std::vector<Member> members_;
  u32 running_ = 0;
  Ending ending_ = Ending::none;
  std::optional<int> status_;  // of the job, once it has failed
  struct {
    bool by_signal;
    std::string said;  // empty: nothing
  } first_{};          // failure
  std::optional<Clock::time_point> next_step_, timeout_;
  std::set<int> passed_;          // signals that the processes have got from the user
  bool broken_ = false;           // standard output
  bool closes_ = false;           // what was left running is killed, and its output taken
  bool forgets_ = false;          // whatever is printed
  std::unique_ptr<Place> place_;  // goes first: no process remains, whatever happened
};

}  // namespace meshpost::launch
