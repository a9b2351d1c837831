#pragma once
#include <optional>
#include <string>

#include "meshpost/base/fn.hpp"

namespace pingpong {

using meshpost::u32;
using meshpost::u64;

/// Faces of a block: -x, +x, -y, +y, -z, +z. The opposite of face f is f ^ 1.
inline constexpr u32 faces = 6;
MESHPOST_FN constexpr u32 opposite(u32 face) { return face ^ 1u; }

/// A grid that is cut into blocks, one for each device; x fastest.
struct Blocks {
  u32 x = 1, y = 1, z = 1;

  u32 count() const { return x * y * z; }
  MESHPOST_FN u32 along(u32 axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
  /// The place of a device along an axis.
  MESHPOST_FN u32 place(u32 device, u32 axis) const {
    return axis == 0 ? device % x : axis == 1 ? device / x % y : device / x / y;
  }
  /// A bit for each face with a neighbour.
  MESHPOST_FN u32 inner_faces(u32 device) const {
    u32 mask = 0;
    for (u32 face = 0; face < faces; ++face) {
      u32 const at = place(device, face / 2);
      bool const inner = face % 2 == 0 ? at > 0 : at + 1 < along(face / 2);
      if (inner) mask |= 1u << face;
    }
    return mask;
  }
  /// The device behind a face that has a neighbour.
  MESHPOST_FN u32 beyond(u32 device, u32 face) const {
    u32 const stride = face < 2 ? 1 : face < 4 ? x : x * y;
    return face % 2 == 0 ? device - stride : device + stride;
  }
  /// The same; none at the edge of the grid.
  std::optional<u32> neighbour(u32 device, u32 face) const {
    return (inner_faces(device) >> face & 1u) != 0 ? std::optional(beyond(device, face))
                                                   : std::nullopt;
  }
  std::string text() const;  ///< "2x2x1"
};

/// As close to a cube as the number allows; x >= y >= z.
Blocks near_cube(u32 devices);
/// From "2x2x1". \throws Error(bad_argument)
Blocks parse_blocks(std::string const& text);

/// Kernels of a step: X that pack (each followed by its sends), Y in the interior, Z that unpack
/// (each behind its waits).
struct Tasks {
  u32 x = 1, y = 1, z = 1;
  std::string text() const;  ///< "1,1,1"
};
/// From "1,1,1": X and Z from 1 to 6, Y from 1 to 64. \throws Error(bad_argument)
Tasks parse_tasks(std::string const& text);

/// Part `index` of `count` things that `parts` share.
struct Range {
  u64 begin, end;
};
MESHPOST_FN inline Range part_of(u64 count, u32 index, u32 parts) {
  return {count * index / parts, count * (index + 1) / parts};
}

}  // namespace pingpong
