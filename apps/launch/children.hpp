#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "guard.hpp"
#include "meshpost/base/fn.hpp"
#include "poller.hpp"
#include "spawn.hpp"

namespace meshpost::launch {

/// How a process ended.
struct End {
  bool by_signal = false;
  int number = 0;  ///< the signal, or the exit status
};

/// What becomes of processes, told from within calls of Children.
class Reports {
 public:
  virtual ~Reports() = default;
  /// `stream`: 1 or 2.
  virtual void printed(u32 process, int stream, std::string_view bytes) = 0;
  virtual void printed_all(u32 process, int stream) = 0;
  /// Should what is printed on `stream` wait?
  virtual bool full(int stream) const = 0;
  /// Behind what the process had printed until then.
  virtual void ended(u32 process, End end) = 0;
};

/// The processes of a job: what they print, what process 0 is given to read, how they end.
class Children {
 public:
  explicit Children(Reports& reports);
  ~Children();  ///< no process remains
  Children(Children const&) = delete;
  Children& operator=(Children const&) = delete;

  /// Process 0 gets what this process reads, where its input is a pipe: it can't read a terminal
  /// itself, as it is in another process group than the terminal's foreground.
  /// \throws NotStarted
  pid_t start(u32 process, Spawn const& spawn);

  /// Names what it waits for; it tells its Reports what comes of it.
  void watch(Poller& poller);
  /// A child of this process has ended, and maybe others with it.
  void collect(pid_t child);
  /// To all processes and what they have started.
  void signal(int number);
  /// May there still be something printed?
  bool open() const;
  /// Takes what was printed by now, and no more.
  void close();

 private:
  struct Member {
    u32 process;
    pid_t pid;
    bool ended;  // but not reaped: until the job's end its number stays its own
  };
  struct Stream {
    u32 process;
    int number;
    Fd fd;
  };

  void collect(Member& member);
  bool read_some(Stream& stream);
  void drain(Stream& stream);
  void end(Stream& stream);
  void read_input();
  void write_input();

  Reports& reports_;
  Guard guard_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Fd input_;           // of process 0
  std::string given_;  // for it; no more is read until it has taken that
};

}  // namespace meshpost::launch
