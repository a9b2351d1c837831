#pragma once

namespace meshpost::test {

/// Whether a sanitizer looks on, which takes up to ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Bounds of time hold for programs as users have them; sanitizers get so many times as long.
inline constexpr int patience_times = sanitized ? 10 : 1;

}  // namespace meshpost::test
