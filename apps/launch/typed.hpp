#pragma once
#include <functional>
#include <string>

#include "poller.hpp"

namespace meshpost::launch {

/// Hands this process's standard input on to process 0, where that can't read it itself: what is
/// typed at a terminal, as it is in another process group than the terminal's foreground, and what
/// goes to another host.
class Typed {
 public:
  using Give = std::function<void(std::string)>;
  /// From the first taken() on.
  void to(Give give) { give_ = std::move(give); }
  /// There is room for more. One is under way at most: what is read before process 0 has taken the
  /// one before would take its place.
  void taken() { reads_ = static_cast<bool>(give_); }
  void watch(Poller& poller);

 private:
  void read_some();

  Give give_;
  bool reads_ = false;
};

}  // namespace meshpost::launch
