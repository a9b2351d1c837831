#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lines.hpp"
#include "link.hpp"
#include "spawn.hpp"

namespace meshpost::launch {

/// An agent on another host, at the end of a command that leads there, such as ssh.
class There {
 public:
  /// What comes of it, told from within its calls.
  struct Calls {
    std::function<void()> greeted;
    std::function<void(Frame const&)> said;
    std::function<void(std::string line)> printed;     ///< by ssh, or what else is on the way
    std::function<void(std::string const& why)> gone;  ///< the agent, and its processes with it
    std::function<bool()> full;                        ///< should it be read later?
  };

  /// \throws NotStarted where the command can't be run
  There(std::vector<std::string> command, std::chrono::milliseconds silence, rlimit files,
        Calls calls);
  ~There();  ///< ends the command, within seconds
  There(There const&) = delete;
  There& operator=(There const&) = delete;

  pid_t pid() const { return child_.pid; }
  bool greeted() const { return greeted_; }
  bool is_gone() const { return gone_; }
  void send(Frame const& frame) {
    if (child_.input) link_.send(frame);
  }
  /// Writes what it can at once.
  void flush();
  /// It had no chance to be heard until now.
  void excuse() { link_.excuse(); }

  void watch(Poller& poller);
  /// A child of this process has ended.
  void collect();
  Clock::time_point next() const;
  void on_time();
  /// Gives it up: kills the command.
  void cut(std::string const& why);
  /// Lets it go: its input ends, so it ends its processes.
  void let_go();

 private:
  void read_some();
  void take();
  void take_greeting();
  void read_errors();
  void say_gone(std::string const& why);
  std::string how_it_ended(int status, bool by_signal) const;

  std::vector<std::string> command_;
  Child child_;
  Link link_;
  Calls calls_;
  Lines noise_;                            // on the command's standard error
  Clock::time_point well_ = Clock::now();  // the last time that nothing had ended
  bool greeted_ = false, gone_ = false, ended_ = false;
};

}  // namespace meshpost::launch
