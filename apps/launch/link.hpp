#pragma once
#include <optional>

#include "frames.hpp"
#include "poller.hpp"
#include "sink.hpp"

namespace meshpost::launch {

/// One end of the connection between the launcher and an agent: frames, and signs of life, so that
/// each notices when the other or what lies between them is gone without a word.
class Link {
 public:
  Link(int in, int out) : in_(in), out_(out) {}

  void send(Frame const& frame) { pack_onto(out_.queue(), frame); }
  /// Who makes more of it should wait.
  bool full() const { return out_.full(); }
  bool pending() const { return out_.pending(); }
  /// Can't be written to any more.
  bool broken() const { return out_.failure() != 0; }

  /// Waits for room, where there is something to send.
  void watch_out(Poller& poller);
  /// Reads once, what poll() says is there. Returns false at the end.
  bool read_some();
  std::optional<std::string> line() { return cutter_.line(); }
  /// The next one but signs of life. \throws Error(bad_argument) for what is no frame
  std::optional<Frame> next();

  /// The other counts as lost when it has said nothing for so long. The other does the same.
  void agree_on(std::chrono::milliseconds silence);
  /// Says that this end lives, where it is time for that.
  void say_alive();
  Clock::time_point next_sign() const { return said_ + silence_ / 4; }
  bool lost() const { return Clock::now() - heard_ > silence_; }
  /// The other had no chance to be heard until now.
  void excuse() { heard_ = Clock::now(); }
  std::chrono::milliseconds silence() const { return silence_; }
  std::size_t received() const { return received_; }

 private:
  int in_;
  Sink out_;
  Cutter cutter_;
  std::size_t received_ = 0;
  std::chrono::milliseconds silence_{std::chrono::minutes(1)};
  Clock::time_point said_ = Clock::now(), heard_ = said_;
};

}  // namespace meshpost::launch
