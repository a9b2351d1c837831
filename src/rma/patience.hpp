#pragma once
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// Ends when nothing has changed for long; 0: never.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds length) : length_(length) {}
  bool ends(u64 progress) {
    if (std::exchange(before_, progress) != progress) since_ = Clock::now();
    return length_.count() != 0 && Clock::now() - since_ > length_;
  }
  std::string text() const {
    return fmt::format("{:.3g} s", static_cast<double>(length_.count()) * 1e-3);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds length_;
  u64 before_ = 0;
  Clock::time_point since_ = Clock::now();
};

}  // namespace meshpost::detail
