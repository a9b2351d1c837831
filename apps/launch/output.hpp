#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lines.hpp"
#include "meshpost/base/fn.hpp"
#include "poller.hpp"
#include "sink.hpp"
#include "spawn.hpp"

namespace meshpost::launch {

/// Puts what the processes print on this terminal, line by line, and in their logs.
class Output {
 public:
  Output(u32 processes, bool label);

  /// From now on forwards what `child` prints; `log`, if open, gets the same bytes unlabelled.
  void add(u32 process, Child& child, Fd log);
  /// A line of the launcher's own, on standard error.
  void say(std::string const& line);
  void watch(Poller& poller);
  /// Takes all that `process` has printed by now, and goes on forwarding.
  void drain(u32 process);
  /// Takes all that was printed by now, and forwards no more.
  void close();
  /// May there still come something?
  bool open() const;
  /// Is there something that was not yet written?
  bool pending() const { return out_.pending() || err_.pending(); }
  void discard();
  /// Why standard output can't be written to any more, an errno; 0: it can.
  int failure() const { return out_.failure(); }

 private:
  struct Stream {
    u32 process;
    Fd fd;
    Lines lines;
    Sink* sink;
    Fd* log;
  };

  bool read_some(Stream& stream);
  void write_log(Stream& stream, char const* bytes, std::size_t size);
  void drain(Stream& stream);

  Sink out_{1}, err_{2};
  Sink* errors_;  // the same as out_ where both lead to the same place: lines must not be mixed
  int width_;     // of the largest number; 0: no labels
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Fd>> logs_;
};

}  // namespace meshpost::launch
