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
  /// `looks` before it sleeps, which takes 55 us at least.
  explicit Pauses(u32 looks = 200) : awake_(looks) {}
  void rest() {
    if (++looks_ < awake_) return std::this_thread::yield();
    std::this_thread::sleep_for(length_);
    length_ = std::min(2 * length_, longest);
  }
  /// Something came: the next may come soon.
  void renew() {
    looks_ = 0;
    length_ = shortest;
  }
  u32 looks() const { return looks_; }

 private:
  static constexpr std::chrono::microseconds shortest{5}, longest{200};
  u32 awake_, looks_ = 0;
  std::chrono::microseconds length_ = shortest;
};

}  // namespace meshpost
