#pragma once
// Random grids with halos, and what their frames must hold: by a look at each cell.
#include <meshpost/array/plan.hpp>

#include <optional>
#include <random>

namespace meshpost::test {

/// A grid, cut at random, with a random halo. The same for the same seed.
struct BoxCase {
  Boxes boxes;
  BoxHalo halo;

  BoxCase(u64 seed, u32 parts) : boxes(Boxes::cut({1}, 1)) {
    std::mt19937_64 random(seed);
    Extents3 grid{1 + random() % 7, 1 + random() % 7, 1 + random() % 7};
    while (grid.x * grid.y * grid.z < parts) ++grid.x;
    std::vector<double> shares(parts);
    for (auto& share : shares) share = random() % 5 == 0 ? 0 : static_cast<double>(random() % 50);
    shares[random() % parts] += 1;
    boxes = random() % 2 == 0 ? Boxes::cut(grid, parts) : Boxes::cut(grid, shares);
    for (u32 d = 0; d < 3; ++d) {
      auto const n = static_cast<u32>(boxes.grid().extent(d));
      halo.boundary[d] = static_cast<Boundary>(random() % 3);
      u32 const most = halo.boundary[d] == Boundary::none ? 4 : std::min(n, 4u);
      halo.widths.low[d] = static_cast<u32>(random() % (most + 1));
      halo.widths.high[d] = static_cast<u32>(random() % (most + 1));
    }
    halo.corners = random() % 2 == 0;
    halo.components = static_cast<u32>(1 + random() % 3);
    halo.components_apart = random() % 2 == 0;
    halo.own = random() % 3 != 0;
  }

  std::string describe() const {
    std::string text = boxes.describe() + ", widths";
    for (u32 d = 0; d < 3; ++d)
      text += " " + std::to_string(halo.widths.low[d]) + "+" + std::to_string(halo.widths.high[d]) +
              "/" + "npr"[static_cast<u32>(halo.boundary[d])];
    return text + (halo.corners ? ", corners, " : ", ") + std::to_string(halo.components) +
           (halo.components_apart ? " apart" : " components") +
           (halo.own ? "" : ", not from its own box");
  }
  Box frame(u32 part) const { return boxes.box(part).grown(halo.widths); }

  /// Global index of the cell that a cell of a frame holds; nothing: it is not received.
  std::optional<u64> cell_of(u32 part, Cell cell) const {
    Box const& box = boxes.box(part);
    u32 outside = 0;
    for (u32 d = 0; d < 3; ++d) {
      i64 const n = boxes.grid().end[d];
      outside += cell[d] < box.begin[d] || cell[d] >= box.end[d];
      while (cell[d] < 0 || cell[d] >= n) {
        if (halo.boundary[d] == Boundary::none) return {};
        if (halo.boundary[d] == Boundary::periodic) cell[d] += cell[d] < 0 ? n : -n;
        else cell[d] = cell[d] < 0 ? -cell[d] - 1 : 2 * n - cell[d] - 1;
      }
    }
    if (outside > 1 && !halo.corners) return {};
    if (outside > 0 && !halo.own && box.contains(cell)) return {};
    return boxes.grid().place_of(cell);
  }
  /// The number that each place of a part's memory must hold after an exchange: the cell's index
  /// times the components, and the component. `nothing` where nothing comes.
  static constexpr u64 nothing = ~u64{0};
  std::vector<u64> expected(u32 part, bool own_only = false) const {
    std::vector<u64> all(frame(part).cells() * halo.components, nothing);
    for (u64 place = 0; place < frame(part).cells(); ++place) {
      Cell const cell = frame(part).cell_at(place);
      auto const index = cell_of(part, cell);
      if (!index || (own_only && !boxes.box(part).contains(cell))) continue;
      for (u32 c = 0; c < halo.components; ++c)
        all[halo.components_apart ? c * frame(part).cells() + place : place * halo.components + c] =
            *index * halo.components + c;
    }
    return all;
  }
};

}  // namespace meshpost::test
