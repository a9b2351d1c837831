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

/// The way in which a process ended.
struct End {
  bool by_signal = false;
  int number = 0;  ///< the signal, or the exit status
};

/// Callbacks for output and ends of processes, called from within calls of Children.
class Reports {
 public:
  virtual ~Reports() = default;
  /// `stream`: 1 or 2.
  virtual void printed(u32 process, int stream, std::string_view bytes) = 0;
  virtual void printed_all(u32 process, int stream) = 0;
  /// True if output on `stream` should wait.
  virtual bool full(int stream) const = 0;
  /// Called after all output that the process had printed until then.
  virtual void ended(u32 process, End end) = 0;
};

/// The processes of a job: their output, the input of process 0, their ends.
class Children {
 public:
  explicit Children(Reports& reports);
  ~Children();  ///< no process remains
  Children(Children const&) = delete;
  Children& operator=(Children const&) = delete;

  /// If its input is a pipe, process 0 gets the bytes that this process reads. It can't read a
  /// terminal itself, because its process group is not the terminal's foreground group.
  /// \throws NotStarted
  pid_t start(u32 process, Spawn const& spawn);

  /// Adds its descriptors to the poller. Their events lead to calls of Reports.
  void watch(Poller& poller);
  /// A child of this process has ended, and maybe others with it.
  void collect(pid_t child);
  /// Signals all processes and their descendants.
  void signal(int number);
  /// True if more output may come.
  bool open() const;
  /// Takes the output printed so far, and no more.
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
  std::string given_;  // for it; the next bytes are read after it has taken these
};

}  // namespace meshpost::launch
