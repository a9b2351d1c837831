#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/fn.hpp"
#include "poller.hpp"

// Where processes run: on this host (here.hpp), on others (cluster.hpp).

namespace meshpost::launch {

/// How a process ended.
struct End {
  bool by_signal = false;
  int number = 0;  ///< the signal, or the exit status
};

/// What becomes of processes, as a Place tells it, from within its calls.
class Reports {
 public:
  virtual ~Reports() = default;
  virtual void started(u32 process, pid_t pid) = 0;
  /// `stream`: 1 or 2.
  virtual void printed(u32 process, int stream, std::string_view bytes) = 0;
  virtual void printed_all(u32 process, int stream) = 0;
  /// Should what is printed on `stream` wait?
  virtual bool full(int stream) const = 0;
  /// Behind what the process had printed until then.
  virtual void ended(u32 process, End end) = 0;
  /// Process 0 is there to read, or what was given as standard input is with it: there may be more.
  virtual void input_taken() = 0;
  /// These were not started, or nobody can say what became of them: no more is told of them.
  virtual void lost(std::vector<u32> const& processes, std::string const& why, int status) = 0;
  /// A line for the user.
  virtual void say(std::string const& line) = 0;
};

class Place {
 public:
  virtual ~Place() = default;  ///< no process remains
  /// Names what it waits for; it tells its Reports what comes of it.
  virtual void watch(Poller& poller) = 0;
  /// A child of this process has ended, and maybe others with it.
  virtual void collect(pid_t child) = 0;
  /// To all processes and what they have started.
  virtual void signal(int number) = 0;
  /// For process 0's standard input, each behind an input_taken(); nothing: there is no more.
  virtual void give(std::string bytes) = 0;
  /// May there still be something printed?
  virtual bool open() const = 0;
  /// Takes what was printed by now, and no more.
  virtual void close() = 0;
  /// Gives up those that do not end, though they were killed.
  virtual void cut() {}
  /// When to call on_time().
  virtual std::optional<Clock::time_point> next() const { return std::nullopt; }
  virtual void on_time() {}
};

}  // namespace meshpost::launch
