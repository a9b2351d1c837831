#pragma once
#include "meshpost/base/types.hpp"

namespace meshpost {

/// Elements of a box in each direction; those that are not named are 1.
struct Extents3 {
  u64 x{1}, y{1}, z{1};
  MESHPOST_FN constexpr bool empty() const { return x == 0 || y == 0 || z == 0; }
};

/// A place in a grid, or a step for each direction.
struct Index3 {
  u64 x{}, y{}, z{};
};

namespace detail {
// Sums and products that stay at the largest value instead of wrapping round. No memory is that
// large, so such a value fails the check of bounds.
inline constexpr u64 too_large = ~u64{0};
MESHPOST_FN constexpr u64 sum_of(u64 a, u64 b) { return a > too_large - b ? too_large : a + b; }
MESHPOST_FN constexpr u64 product_of(u64 a, u64 b) {
  bool const fits = ((a | b) >> 32) == 0 || b == 0 || a <= too_large / b;  // divides seldom
  return fits ? a * b : too_large;
}
}  // namespace detail

/// Places of the elements of a box of up to three dimensions: element (i, j, k) lies at
/// offset + i * strides.x + j * strides.y + k * strides.z, all in elements of a span. It is like
/// mdspan's layout_stride and MPI's subarray.
///
/// A subarray that leaves its bounds is not cut: it becomes invalid, and an operation that gets it
/// fails.
struct StridedLayout {
  Extents3 extents;
  Index3 strides{1, 1, 1};
  u64 offset = 0;

  /// A whole grid without gaps; x runs fastest.
  MESHPOST_FN static constexpr StridedLayout dense(Extents3 grid) {
    u64 const row = grid.x, plane = detail::product_of(grid.x, grid.y);
    bool const fits = detail::product_of(plane, grid.z) != detail::too_large;
    return {grid, {1, row, plane}, fits ? 0 : invalid_offset};
  }
  /// The box of `box` elements that begins at `from`: a face of a grid, for example.
  MESHPOST_FN constexpr StridedLayout subarray(Index3 from, Extents3 box) const {
    bool const fits = valid() && inside(from.x, box.x, extents.x) &&
                      inside(from.y, box.y, extents.y) && inside(from.z, box.z, extents.z);
    return {box, strides, fits ? at(from) : invalid_offset};
  }

  MESHPOST_FN constexpr bool valid() const { return offset != invalid_offset; }
  /// All elements; 2^64 - 1 if there are more.
  MESHPOST_FN constexpr u64 volume() const {
    if (extents.empty()) return 0;
    return detail::product_of(detail::product_of(extents.x, extents.y), extents.z);
  }
  /// Elements of the span up to the last one that this names; 2^64 - 1 if there are more.
  MESHPOST_FN constexpr u64 reach() const {
    if (extents.empty()) return 0;
    return detail::sum_of(at({extents.x - 1, extents.y - 1, extents.z - 1}), 1);
  }
  /// True if no two elements share a place, by a simple rule: each stride is larger than the span
  /// of all smaller ones. Rows that interleave break the rule.
  MESHPOST_FN constexpr bool is_unique() const {
    u64 const counts[] = {extents.x, extents.y, extents.z};
    u64 const steps[] = {strides.x, strides.y, strides.z};
    for (int d = 0; d < 3; ++d) {
      u64 below = 0;
      for (int other = 0; other < 3; ++other)
        if (other != d && counts[other] > 1 && steps[other] <= steps[d])
          below = detail::sum_of(below, detail::product_of(counts[other] - 1, steps[other]));
      if (counts[d] > 1 && steps[d] <= below) return extents.empty();
    }
    return true;
  }

  static constexpr u64 invalid_offset = ~u64{0};

 private:
  MESHPOST_FN static constexpr bool inside(u64 from, u64 count, u64 limit) {
    return from <= limit && count <= limit - from;
  }
  MESHPOST_FN constexpr u64 at(Index3 index) const {
    u64 place = offset;
    place = detail::sum_of(place, detail::product_of(index.x, strides.x));
    place = detail::sum_of(place, detail::product_of(index.y, strides.y));
    return detail::sum_of(place, detail::product_of(index.z, strides.z));
  }
};

}  // namespace meshpost
