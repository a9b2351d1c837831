#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "children.hpp"
#include "options.hpp"
#include "output.hpp"

namespace meshpost::launch {

/// Runs one job: starts its processes, forwards signals and output, ends all when one fails.
class Supervisor : private Reports {
 public:
  explicit Supervisor(Options const& options);

  /// Returns the exit status of the job.
  /// \throws NotStarted if the first process could not be started
  int run();

 private:
  struct Member {
    pid_t pid;
    bool runs;
  };
  // Steps of the end of a job; each lasts until `next_step_`.
  enum class Ending { none, noticed, grace, terminated, killed };

  void printed(u32 process, int stream, std::string_view bytes) override;
  void printed_all(u32 process, int stream) override;
  bool full(int stream) const override { return output_.full(stream); }
  void ended(u32 process, End end) override;

  void start();
  void loop();
  void failed(u32 process, End how);
  void announce();
  void name_stopped();
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
  std::vector<Member> members_;
  u32 running_ = 0;
  Ending ending_ = Ending::none;
  std::optional<int> status_;  // of the job, once it has failed
  struct {
    bool by_signal;
    std::string said;  // empty: nothing
  } first_{};          // failure
  std::optional<Clock::time_point> next_step_, timeout_;
  std::set<int> passed_;  // signals of the user that were passed on to the processes
  bool broken_ = false;   // standard output
  bool forgets_ = false;  // discards all later output
  Children children_;     // destroyed first: no process remains in any case
};

}  // namespace meshpost::launch
