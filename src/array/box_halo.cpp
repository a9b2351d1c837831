// The geometry of halos: which cells of a frame come from which part.
#include "array/box_halo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "array/box_text.hpp"
#include "array/part_owners.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

constexpr char const dimension_names[] = "xyz";

// Coordinates in one dimension whose cells come from origin + sign * coordinate.
struct Stretch {
  i64 begin, end, origin, sign;
};

// Those from `begin` to `end` of a grid of n cells, without those that come from nowhere. As a halo
// is not wider than such a grid, they wrap or reflect once.
std::vector<Stretch> stretches(i64 begin, i64 end, i64 n, Boundary boundary) {
  std::vector<Stretch> all;
  auto const add = [&](i64 from, i64 to, i64 origin, i64 sign) {
    from = std::max(from, begin), to = std::min(to, end);
    if (from < to) all.push_back({from, to, origin, sign});
  };
  if (boundary == Boundary::periodic) add(begin, 0, n, 1);
  if (boundary == Boundary::reflecting) add(begin, 0, -1, -1);
  add(0, n, 0, 1);
  if (boundary == Boundary::periodic) add(n, end, -n, 1);
  if (boundary == Boundary::reflecting) add(n, end, 2 * n - 1, -1);
  return all;
}

// The coordinates that a map takes to those from `begin` to `end`. It is its own inverse, except
// for the sign of a shift.
std::pair<i64, i64> before_map(i64 begin, i64 end, i64 origin, i64 sign) {
  if (sign > 0) return {begin - origin, end - origin};
  return {origin - end + 1, origin - begin + 1};
}

class Receiver {
 public:
  Receiver(Boxes const& boxes, BoxHalo const& halo, u32 to)
      : boxes_(boxes), halo_(halo), to_(to), box_(boxes.box(to)), frame_(box_.grown(halo.widths)) {}

  std::vector<HaloPiece> pieces() {
    for (i32 z = -1; z <= 1; ++z)
      for (i32 y = -1; y <= 1; ++y)
        for (i32 x = -1; x <= 1; ++x) {
          i32 const outside = x * x + y * y + z * z;  // number of dimensions
          if (outside == 1 || (outside > 1 && halo_.corners)) take({x, y, z});
        }
    // Pieces are disjoint, so each has a first cell of its own, and both ends get the same order.
    std::ranges::sort(pieces_, std::less(), [](HaloPiece const& one) {
      Cell const first = one.target.begin;
      return std::tuple(one.from, first.z, first.y, first.x);
    });
    return std::move(pieces_);
  }

 private:
  // The cells in one direction from the box.
  void take(Cell direction) {
    std::vector<Stretch> by_dimension[3];
    for (u32 d = 0; d < 3; ++d) {
      i64 const begin = direction[d] < 0   ? frame_.begin[d]
                        : direction[d] > 0 ? box_.end[d]
                                           : box_.begin[d];
      i64 const end = direction[d] < 0   ? box_.begin[d]
                      : direction[d] > 0 ? frame_.end[d]
                                         : box_.end[d];
      by_dimension[d] = stretches(begin, end, boxes_.grid().end[d], halo_.boundary[d]);
    }
    for (auto const& z : by_dimension[2])
      for (auto const& y : by_dimension[1])
        for (auto const& x : by_dimension[0]) take(x, y, z);
  }
  void take(Stretch const& x, Stretch const& y, Stretch const& z) {
    HaloPiece const piece{.to = to_,
                          .from = 0,
                          .target = {{x.begin, y.begin, z.begin}, {x.end, y.end, z.end}},
                          .origin = {x.origin, y.origin, z.origin},
                          .sign = {x.sign, y.sign, z.sign}};
    Box source;
    for (u32 d = 0; d < 3; ++d) {
      Cell const one = piece.source(piece.target.begin),
                 other = piece.source(
                     {piece.target.end.x - 1, piece.target.end.y - 1, piece.target.end.z - 1});
      source.begin[d] = std::min(one[d], other[d]);
      source.end[d] = std::max(one[d], other[d]) + 1;
    }
    boxes_.each_in(source, [&](u32 from) {
      if (from == to_ && !halo_.own) return;
      Box const common = source.intersect(boxes_.box(from));
      HaloPiece part = piece;
      part.from = from;
      for (u32 d = 0; d < 3; ++d)
        std::tie(part.target.begin[d], part.target.end[d]) =
            before_map(common.begin[d], common.end[d], piece.origin[d], piece.sign[d]);
      pieces_.push_back(part);
    });
  }

  Boxes const& boxes_;
  BoxHalo const& halo_;
  u32 to_;
  Box box_, frame_;
  std::vector<HaloPiece> pieces_{};
};

}  // namespace

std::vector<HaloPiece> halo_pieces(Boxes const& boxes, BoxHalo const& halo, u32 to) {
  if (boxes.box(to).empty()) return {};
  return Receiver(boxes, halo, to).pieces();
}

void check_halo(Boxes const& boxes, BoxHalo const& halo) {
  if (halo.components == 0)
    throw Error(Kind::bad_argument, make_a_plan, "cells of 0 components were requested",
                "give each cell at least one");
  for (u32 d = 0; d < 3; ++d) {
    if (halo.boundary[d] == Boundary::none) continue;
    u64 const cells = boxes.grid().extent(d),
              width = std::max(halo.widths.low[d], halo.widths.high[d]);
    if (width > cells)
      throw Error(Kind::bad_argument, make_a_plan,
                  fmt::format("a {} halo of {} cells was requested in dimension {}, where the grid "
                              "has {}",
                              halo.boundary[d] == Boundary::periodic ? "periodic" : "reflecting",
                              width, dimension_names[d], cells),
                  fmt::format("request at most {}", cells));
  }
  for (u32 part = 0; part < boxes.parts(); ++part) {
    Box const frame = boxes.box(part).grown(halo.widths);
    u64 elements = halo.components;
    for (u32 d = 0; d < 3; ++d) elements = detail::product_of(elements, frame.extent(d));
    if (elements >= u64{1} << 62)
      throw Error(
          Kind::bad_argument, make_a_plan,
          fmt::format("the frame of part {} is {}, with {} components a cell; 2^62 elements "
                      "are too many",
                      part, text_of(frame), halo.components),
          "give narrower halos");
  }
}

std::optional<u64> place_in_frame(Boxes const& boxes, BoxHalo const& halo, u32 part, Cell cell) {
  Box const& box = boxes.box(part);
  Box const frame = box.grown(halo.widths);
  std::vector<i64> images[3];  // coordinates at which the frame may have the cell
  for (u32 d = 0; d < 3; ++d) {
    i64 const n = boxes.grid().end[d], at = cell[d];
    images[d] = {at};
    if (halo.boundary[d] == Boundary::periodic) images[d] = {at, at - n, at + n};
    if (halo.boundary[d] == Boundary::reflecting) images[d] = {at, -1 - at, 2 * n - 1 - at};
  }
  std::optional<u64> best;
  u32 least = 4;  // dimensions in which it was moved
  for (i64 const z : images[2])
    for (i64 const y : images[1])
      for (i64 const x : images[0]) {
        Cell const image{x, y, z};
        u32 moved = 0, outside = 0;
        for (u32 d = 0; d < 3; ++d) {
          moved += image[d] != cell[d];
          outside += image[d] < box.begin[d] || image[d] >= box.end[d];
        }
        if (moved >= least || !frame.contains(image) || (outside > 1 && !halo.corners)) continue;
        least = moved, best = halo.place_of(frame, image);
      }
  return best;
}

}  // namespace meshpost
