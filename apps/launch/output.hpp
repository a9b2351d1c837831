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

/// A queue of bytes before standard output or error. Other processes share these, so they stay
/// blocking. The sink writes only as much as poll() says can be taken.
class Sink {
 public:
  explicit Sink(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  std::string& queue() { return queue_; }
  bool pending() const { return written_ < queue_.size(); }
  /// True if the caller should wait before it adds more.
  bool full() const { return queue_.size() - written_ > (std::size_t{1} << 20); }
  /// Writes as much as possible without waiting.
  void write_some();
  /// Drops the queue.
  void discard();
  /// The errno of a failed write; 0: none. After a failure all bytes are dropped.
  int failure() const { return failure_; }

 private:
  int fd_, failure_ = 0;
  std::string queue_;
  std::size_t written_ = 0;
};

/// Writes the output of the processes to this terminal, line by line, and to their logs.
class Output {
 public:
  /// If `label`, each line begins with the number of its process. `logs`, if there are any, get the
  /// same bytes without it.
  Output(u32 processes, bool label, std::vector<Fd> logs);

  /// Takes output of a process; `stream`: 1 or 2.
  void add(u32 process, int stream, std::string_view bytes);
  /// That output has ended.
  void end(u32 process, int stream);
  /// A line of the launcher's own, on standard error.
  void say(std::string const& line);
  void watch(Poller& poller);
  /// True if processes that print on `stream` should wait.
  bool full(int stream) const { return (stream == 1 ? out_ : *errors_).full(); }
  /// True if some output is not yet written.
  bool pending() const { return out_.pending() || err_.pending(); }
  void discard();
  /// The errno of a failed write to standard output; 0: none.
  int failure() const { return out_.failure(); }

 private:
  struct Printed {
    std::array<Lines, 2> lines;
    Fd log;
  };

  Sink& sink(int stream) { return stream == 1 ? out_ : *errors_; }
  void write_log(u32 process, std::string_view bytes);

  Sink out_{1}, err_{2};
  Sink* errors_;  // = &out_ if both lead to the same place: lines must not be mixed
  std::vector<Printed> printed_;
};

/// Makes the folder and opens an empty folder/process-k.log for each process. No logs if it has no
/// name.
std::vector<Fd> open_logs(std::string const& folder, u32 processes);

}  // namespace meshpost::launch
