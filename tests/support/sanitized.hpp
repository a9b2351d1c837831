#pragma once
#include <chrono>

namespace meshpost::test {

/// True under a sanitizer, which takes up to ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Time bounds hold for normal builds on idle cores. Tests share cores with others, and sanitizers
/// are slow: these get so many times as long.
inline constexpr int timeout_factor = sanitized ? 10 : 2;

/// For tests that must end although a network's thread hangs for net::Faulty::hangs, 3 s.
inline constexpr std::chrono::milliseconds before_it_comes_back{sanitized ? 20'000 : 2900};

}  // namespace meshpost::test
