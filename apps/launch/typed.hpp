#pragma once
#include <string>
#include <utility>

#include "poller.hpp"
#include "system.hpp"

namespace meshpost::launch {

/// Hands what is typed at the terminal on to process 0, which can't read there itself: it is in
/// another process group than the terminal's foreground.
class Typed {
 public:
  void to(Fd input) { input_ = std::move(input); }
  void watch(Poller& poller);

 private:
  void read_some();
  void write_some();

  Fd input_;
  std::string held_;
};

}  // namespace meshpost::launch
