#pragma once
// Grids, cells and boxes in errors.
#include <fmt/format.h>

#include "meshpost/array/box.hpp"

namespace meshpost {

inline std::string text_of(Extents3 extents) {
  return fmt::format("{} x {} x {}", extents.x, extents.y, extents.z);
}
inline std::string text_of(Cell cell) {
  return fmt::format("({}, {}, {})", cell.x, cell.y, cell.z);
}
inline std::string text_of(Box const& box) {
  return fmt::format("{} to {}", text_of(box.begin), text_of(box.end));
}

}  // namespace meshpost
