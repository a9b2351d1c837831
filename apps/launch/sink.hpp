#pragma once
#include <cstddef>
#include <string>

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

}  // namespace meshpost::launch
