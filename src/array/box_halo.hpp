#pragma once
#include <optional>
#include <vector>

#include "meshpost/array/plan.hpp"

namespace meshpost {

/// Cells that part `to` receives from part `from`: cell c of `target` is that of the grid whose
/// coordinate is origin + sign * c in each dimension.
struct HaloPiece {
  u32 to, from;
  Box target;  ///< in the frame; it may leave the grid
  Cell origin, sign;

  Cell source(Cell cell) const {
    for (u32 d = 0; d < 3; ++d) cell[d] = origin[d] + sign[d] * cell[d];
    return cell;
  }
};

/// The pieces that part `to` receives, by `from`. The same at both ends, so that both list the
/// elements of a message in the same order.
std::vector<HaloPiece> halo_pieces(Boxes const& boxes, BoxHalo const& halo, u32 to);
/// \throws Error(bad_argument) as Plan::from_boxes
void check_halo(Boxes const& boxes, BoxHalo const& halo);
/// As Plan::place_of. Nothing if the part neither has the cell nor receives it.
std::optional<u64> place_in_frame(Boxes const& boxes, BoxHalo const& halo, u32 part, Cell cell);

}  // namespace meshpost
