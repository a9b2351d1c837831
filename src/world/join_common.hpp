#pragma once
#include <algorithm>
#include <chrono>

// What both sides of the door know (door.cpp and join.cpp).

namespace meshpost::join {

using Clock = std::chrono::steady_clock;
constexpr auto greeting_patience = std::chrono::seconds(5);  // with one stranger
constexpr char const* operation = "join the job";
constexpr char const* other_job = "another job meets there";

inline int milliseconds_until(Clock::time_point when) {
  auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(when - Clock::now());
  return static_cast<int>(std::clamp<long>(left.count() + 1, 0, 60'000));
}

inline double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) * 1e-3;
}

}  // namespace meshpost::join
