#pragma once
#include <chrono>

namespace meshpost::test {

/// Whether a sanitizer looks on, which takes up to ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Bounds of time hold for programs as users have them, on cores that are free. Tests share theirs
/// with others, and sanitizers take their time: these get so many times as long.
inline constexpr int timeout_factor = sanitized ? 10 : 2;

/// For those that must end though a network's thread hangs for net::Faulty::hangs, 3 s.
inline constexpr std::chrono::milliseconds before_it_comes_back{sanitized ? 20'000 : 2900};

}  // namespace meshpost::test
