#pragma once
#include <meshpost/base/fn.hpp>

#include "blocks.hpp"

namespace pingpong {

/// Coefficient of the stencil; below 1/6 it is stable.
inline constexpr double coefficient = 0.1;

/// One step of a device's block of n^3 points, in its own memory. Fields have a layer more on each
/// side: points of the neighbours, or zeros at the edge of the grid.
///
///     next = u + 0.1 (((west + east) + (south + north)) + (down + up) - 6 u)
///
/// A step has three parts. pack: points at the faces, also into the outbox. interior: the others.
/// unpack: the neighbours' points, from the inbox.
struct Block {
  double const* now;
  double* next;
  double* outbox;       ///< a face behind the other, n^2 points each
  double const* inbox;  ///< the same
  u32 n;
  u32 inner;  ///< a bit for each face with a neighbour

  MESHPOST_FN u64 side() const { return n + 2; }
  MESHPOST_FN u64 at(u32 i, u32 j, u32 k) const { return (k * side() + j) * side() + i; }
  MESHPOST_FN bool has_neighbour(u32 face) const { return (inner >> face & 1u) != 0; }

  MESHPOST_FN double value(u64 p) const {
    u64 const row = side(), slice = side() * side();
    double const u = now[p];
    double const around = ((now[p - 1] + now[p + 1]) + (now[p - row] + now[p + row])) +
                          (now[p - slice] + now[p + slice]);
    return u + coefficient * (around - 6.0 * u);
  }

  /// Point `e` of a face. Points at edges belong to several faces: each computes them for its
  /// outbox, and the first one stores them.
  MESHPOST_FN void pack(u32 face, u32 e) const {
    Point const point = on_face(face, e, face % 2 == 0 ? 1 : n);
    u64 const p = at(point.i, point.j, point.k);
    double const found = value(p);
    if (first_face(point) == face) next[p] = found;
    if (has_neighbour(face)) outbox[u64{face} * n * n + e] = found;
  }
  /// Point `e` of the (n - 2)^3 that are at no face.
  MESHPOST_FN void interior(u32 e) const {
    u32 const m = n - 2;
    u64 const p = at(2 + e % m, 2 + e / m % m, 2 + e / m / m);
    next[p] = value(p);
  }
  /// Point `e` of what came from behind a face.
  MESHPOST_FN void unpack(u32 face, u32 e) const {
    Point const point = on_face(face, e, face % 2 == 0 ? 0 : n + 1);
    next[at(point.i, point.j, point.k)] = inbox[u64{face} * n * n + e];
  }

  MESHPOST_FN u32 face_points() const { return n * n; }
  MESHPOST_FN u32 interior_points() const { return (n - 2) * (n - 2) * (n - 2); }

 private:
  struct Point {
    u32 i, j, k;
  };
  MESHPOST_FN Point on_face(u32 face, u32 e, u32 layer) const {
    u32 const a = 1 + e % n, b = 1 + e / n;
    return face < 2 ? Point{layer, a, b} : face < 4 ? Point{a, layer, b} : Point{a, b, layer};
  }
  MESHPOST_FN u32 first_face(Point const& point) const {
    if (point.i == 1) return 0;
    if (point.i == n) return 1;
    if (point.j == 1) return 2;
    if (point.j == n) return 3;
    return point.k == 1 ? 4 : 5;
  }
};

}  // namespace pingpong
