#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lines.hpp"
#include "meshpost/base/fn.hpp"
#include "poller.hpp"
#include "sink.hpp"
#include "system.hpp"

namespace meshpost::launch {

/// Puts what the processes print on this terminal, line by line, and in their logs.
class Output {
 public:
  /// A label for each process; `logs`, if there are any, get the same bytes without labels.
  Output(std::vector<std::string> const& labels, std::vector<Fd> logs);

  /// Takes what a process has printed; `stream`: 1 or 2.
  void add(u32 process, int stream, std::string_view bytes);
  /// There is no more of it.
  void end(u32 process, int stream);
  /// A line of the launcher's own, on standard error.
  void say(std::string const& line);
  /// One that is neither the launcher's nor a process's.
  void pass_on(std::string const& line);
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

/// What stands before each line of a process: its number, and where `hosts` are named, its host.
std::vector<std::string> labels(u32 processes, std::vector<std::string> const& hosts);

}  // namespace meshpost::launch
