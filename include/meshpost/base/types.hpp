#pragma once
#include "meshpost/base/fn.hpp"

// Strong types of the surface: two neighbouring integers can't be swapped by mistake.

namespace meshpost {

/// A rank's number in a communicator (in the world if none is named).
struct RankId {
  u32 value{};
  MESHPOST_FN constexpr operator u32() const { return value; }
};

/// The number of a counter in its window.
struct Tag {
  u32 value{};
};

/// Number of counters that a window has for each rank.
struct Tags {
  u32 value{};
};

/// An amount of memory.
struct Bytes {
  u64 value{};
  MESHPOST_FN constexpr operator u64() const { return value; }
};

/// Threads of a rank, or a thread's position in it; x runs fastest.
struct Dim3 {
  u32 x{1}, y{1}, z{1};
  MESHPOST_FN constexpr u32 volume() const { return x * y * z; }
};

/// The comparison of `wait_until`: the polled word is left, the value right.
enum class Compare : u8 { equal, not_equal, less, less_equal, greater, greater_equal };

template <class T>
struct PlainOf {
  using type = T;
};
template <class T>
struct PlainOf<T const> {
  using type = T;
};
/// T without const (NVRTC has no <type_traits>).
template <class T>
using Plain = typename PlainOf<T>::type;

/// True if two types are the same (NVRTC has neither <type_traits> nor g++'s __is_same).
template <class T, class U>
inline constexpr bool same = false;
template <class T>
inline constexpr bool same<T, T> = true;

/// Keeps an argument out of template deduction, so that a mutable span converts to a const one.
template <class T>
struct Identity {
  using type = T;
};
template <class T>
using NonDeduced = typename Identity<T>::type;

}  // namespace meshpost
