#pragma once
#include <algorithm>
#include <chrono>

#include "world/job.hpp"

// Shared by both sides of the acceptor (acceptor.cpp and join.cpp).

namespace meshpost::join {

using Clock = std::chrono::steady_clock;
constexpr auto greeting_timeout = std::chrono::seconds(5);  // with one call, at most
constexpr char const* operation = "join the job";
constexpr char const* other_job = "another job meets there";

// Timeout of either end with one call. A changed length makes one end wait for bytes that never
// come. So a call is given up early enough for another one before the start deadline.
inline std::chrono::milliseconds timeout_with_a_call(Job const& job) {
  return job.timeout.count() == 0
             ? greeting_timeout
             : std::min<std::chrono::milliseconds>(greeting_timeout, job.timeout / 4);
}

inline int milliseconds_until(Clock::time_point when) {
  auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(when - Clock::now());
  return static_cast<int>(std::clamp<long>(left.count() + 1, 0, 60'000));
}

inline double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) * 1e-3;
}

}  // namespace meshpost::join
