#pragma once
#include <algorithm>
#include <chrono>
#include <thread>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// The pauses of a thread that polls for something of another thread or device. They get longer,
/// because that may take long, and the other may need this core.
class Pauses {
 public:
  void rest() {
    if (++looks_ < 200) return std::this_thread::yield();
    std::this_thread::sleep_for(length_);
    length_ = std::min(2 * length_, longest);
  }
  u32 looks() const { return looks_; }

 private:
  static constexpr std::chrono::microseconds longest{200};
  u32 looks_ = 0;
  std::chrono::microseconds length_{5};
};

}  // namespace meshpost
