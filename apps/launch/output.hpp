#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lines.hpp"
#include "meshpost/base/fn.hpp"
#include "poller.hpp"
#include "system.hpp"

namespace meshpost::launch {

/// A queue of bytes before standard output or error. Others share these, so they stay blocking;
/// the sink writes only what poll() promises to take.
class Sink {
 public:
  explicit Sink(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  std::string& queue() { return queue_; }
  bool pending() const { return written_ < queue_.size(); }
  /// Who fills it should wait until it is written.
  bool full() const { return queue_.size() - written_ > (std::size_t{1} << 20); }
  /// Writes what it can without waiting.
  void write_some();
  /// Forgets what is queued.
  void discard();
  /// Why it can't be written to any more, an errno; 0: it can. Then it forgets what it is given.
  int failure() const { return failure_; }

 private:
  int fd_, failure_ = 0;
  std::string queue_;
  std::size_t written_ = 0;
};

/// Puts what the processes print on this terminal, line by line, and in their logs.
class Output {
 public:
  /// For so many processes. Each line gets its process's number, if `label`; `logs`, if there are
  /// any, get the same bytes without it.
  Output(u32 processes, bool label, std::vector<Fd> logs);

  /// Takes what a process has printed; `stream`: 1 or 2.
  void add(u32 process, int stream, std::string_view bytes);
  /// There is no more of it.
  void end(u32 process, int stream);
  /// A line of the launcher's own, on standard error.
  void say(std::string const& line);
  void watch(Poller& poller);
  /// Who prints on `stream` should wait.
  bool full(int stream) const { return (stream == 1 ? out_ : *errors_).full(); }
  /// Is there something that was not yet written?
  bool pending() const { return out_.pending() || err_.pending(); }
  void discard();
  /// Why standard output can't be written to any more, an errno; 0: it can.
  int failure() const { return out_.failure(); }

 private:
  struct Printed {
    std::array<Lines, 2> lines;
    Fd log;
  };

  Sink& sink(int stream) { return stream == 1 ? out_ : *errors_; }
  void write_log(u32 process, std::string_view bytes);

  Sink out_{1}, err_{2};
  Sink* errors_;  // the same as out_ where both lead to the same place: lines must not be mixed
  std::vector<Printed> printed_;
};

/// Opens folder/process-k.log for each process, empty; makes the folder. None, if it has no name.
std::vector<Fd> open_logs(std::string const& folder, u32 processes);

}  // namespace meshpost::launch
