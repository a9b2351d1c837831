// A device's table for the kernel of a grid (array/detail/grid_kernel.hpp).
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "array/box_halo.hpp"
#include "meshpost/array/grid.hpp"

namespace meshpost::detail {
namespace {

// How a part's box is cut into tiles: in each dimension at these places.
struct Tiles {
  Box box{};
  std::vector<i64> cuts[3]{};  // with the box's ends

  u64 count(u32 d) const { return cuts[d].empty() ? 0 : cuts[d].size() - 1; }
  u64 all() const { return count(0) * count(1) * count(2); }
  Box tile(u64 number) const {
    Box one;
    for (u32 d = 0; d < 3; ++d) {
      auto const at = number % count(d);
      number /= count(d);
      one.begin[d] = cuts[d][at], one.end[d] = cuts[d][at + 1];
    }
    return one;
  }
  u64 tile_of(Cell cell) const {
    u64 number = 0;
    for (u32 d = 3; d-- > 0;) {
      auto const behind = std::ranges::upper_bound(cuts[d], cell[d]);
      number = number * count(d) + static_cast<u64>(behind - cuts[d].begin() - 1);
    }
    return number;
  }
};

// Cuts through a box that leave no tile half in `inner`, which needs no halo of other parts.
Tiles cut_tiles(Box const& box, Box const& inner, i64 const (&size)[3]) {
  Tiles tiles{.box = box};
  for (u32 d = 0; d < 3; ++d) {
    auto& cuts = tiles.cuts[d];
    i64 const ends[] = {box.begin[d], inner.empty() ? box.begin[d] : inner.begin[d],
                        inner.empty() ? box.end[d] : inner.end[d], box.end[d]};
    for (u32 i = 0; i < 3; ++i)
      for (i64 at = ends[i]; at < ends[i + 1]; at += size[d]) cuts.push_back(at);
    cuts.push_back(box.end[d]);
  }
  return tiles;
}

// On GPUs, tiles of 64 cells in x, because the threads of a block go through y and z and find in
// the cache what they have loaded. Of CPU devices, whole rows. If there are too few for the ranks,
// they get smaller, down to what is worth a rank's while.
Tiles tiles_of(Box const& box, Box const& inner, bool gpu, u32 ranks) {
  if (box.empty()) return {};
  i64 size[] = {gpu ? 64 : static_cast<i64>(box.extent(0)), 8, gpu ? 16 : 8};
  for (u32 d = 0; d < 3; ++d) size[d] = std::min(size[d], static_cast<i64>(box.extent(d)));
  auto const cells = [&] { return size[0] * size[1] * size[2]; };
  i64 const least = gpu ? 512 : 256, most = 8192;
  while (gpu && cells() < most / 2 && size[0] < static_cast<i64>(box.extent(0))) size[0] *= 2;
  Tiles tiles = cut_tiles(box, inner, size);
  while (tiles.all() < u64{4} * ranks && cells() >= 2 * least) {
    u32 const d = size[2] >= size[1] && size[2] > 1 ? 2 : size[1] > 1 ? 1 : 0;
    size[d] = (size[d] + 1) / 2;
    tiles = cut_tiles(box, inner, size);
  }
  return tiles;
}

// The cells of a part's halo for which its ranks do something.
struct HaloWork {
  std::vector<std::pair<u64, u64>> fills{};  // own cells: from, to
  std::vector<u64> late{};                   // mirrored cells of other parts
};

BoxHalo with_own(BoxHalo halo) {
  halo.own = true;
  return halo;
}

// The cells that need no halo of other parts.
Box inner_of(GridLayout const& layout, u32 number) {
  Box const box = layout.boxes().box(number);
  Sides foreign;
  for (auto const& piece : halo_pieces(layout.boxes(), layout.halo(), number))
    for (u32 d = 0; d < 3; ++d) {
      if (piece.target.begin[d] < box.begin[d]) foreign.low[d] = layout.halo().widths.low[d];
      if (piece.target.end[d] > box.end[d]) foreign.high[d] = layout.halo().widths.high[d];
    }
  return box.shrunk(foreign);
}

HaloWork halo_work(GridLayout const& layout, u32 number) {
  HaloWork work;
  Box const frame = layout.frame(number);
  for (auto const& piece : halo_pieces(layout.boxes(), with_own(layout.halo()), number)) {
    bool const own = piece.from == number;
    u64 axes = 0;
    for (u32 d = 0; d < 3; ++d)
      if (piece.sign[d] < 0) axes |= u64{1} << d;
    for (u64 i = 0; (own || axes != 0) && i < piece.target.cells(); ++i) {
      Cell const cell = piece.target.cell_at(i);
      u64 const to = frame.place_of(cell) | axes << GridTable::axes_shift;
      if (own) work.fills.emplace_back(frame.place_of(piece.source(cell)), to);
      else work.late.push_back(to);
    }
  }
  return work;
}

}  // namespace

// More than any device needs, whatever its kind: all processes must come to the same number.
u64 GridLayout::table_words(World const& world) const {
  u64 words = 0;
  for (u32 part = 0; part < boxes_.parts(); ++part) {
    Box const& box = boxes_.box(part);
    u64 const halo = frame(part).cells() - box.cells();
    Box const inner = inner_of(*this, part);
    u64 const tiles = std::max(tiles_of(box, inner, true, world.ranks_per_device()).all(),
                               tiles_of(box, inner, false, world.ranks_per_device()).all());
    words = std::max(words, GridTable::header + tiles * (GridTable::box_words + 1) + 1 + 3 * halo);
  }
  return words;
}

std::vector<u64> GridLayout::table(World const& world, u32 number) const {
  auto const& device = *world.devices()[number - plan_.first_part()];
  bool const gpu = !device.in_host_memory();
  Box const box = boxes_.box(number), around = frame(number);
  Box const inner = inner_of(*this, number);
  Tiles const tiles = tiles_of(box, inner, gpu, world.ranks_per_device());
  HaloWork work = halo_work(*this, number);

  // Inner tiles first; `place`: number of a tile in that order.
  std::vector<u64> order(tiles.all()), place(tiles.all());
  std::iota(order.begin(), order.end(), u64{0});
  auto const is_inner = [&](u64 tile) { return inner.contains(tiles.tile(tile)); };
  std::ranges::sort(order, std::less(), [&](u64 tile) { return std::pair(!is_inner(tile), tile); });
  for (u64 i = 0; i < order.size(); ++i) place[order[i]] = i;

  std::vector<u64> table(GridTable::header);
  GridFrame layout{.row = around.extent(0),
                   .plane = around.extent(0) * around.extent(1),
                   .component = around.cells()};
  layout.first = 0 - GridFrame(layout).place(around.begin.x, around.begin.y, around.begin.z);
  table[GridTable::frame] = layout.first, table[GridTable::frame + 1] = layout.row;
  table[GridTable::frame + 2] = layout.plane, table[GridTable::frame + 3] = layout.component;
  table[GridTable::inner] = static_cast<u64>(std::ranges::count_if(order, is_inner));
  table[GridTable::tiles] = order.size();
  table[GridTable::boxes] = table.size();
  for (u64 const tile : order) {
    Box const one = tiles.tile(tile);
    for (Cell const& cell : {one.begin, one.end})
      for (u32 d = 0; d < 3; ++d) table.push_back(static_cast<u64>(cell[d]));
  }

  // Cells to fill, by tile: counted, then each put to its place.
  std::vector<u64> tile_of, ends(order.size() + 1);
  for (auto const& fill : work.fills) {
    tile_of.push_back(place[tiles.tile_of(around.cell_at(fill.first))]);
    ++ends[tile_of.back() + 1];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  table[GridTable::fill_begins] = table.size();
  table.insert(table.end(), ends.begin(), ends.end());
  table[GridTable::fills] = table.size();
  table.resize(table.size() + 2 * work.fills.size());
  for (u64 i = 0; i < work.fills.size(); ++i) {
    u64 const at = table[GridTable::fills] + 2 * ends[tile_of[i]]++;
    std::tie(table[at], table[at + 1]) = work.fills[i];
  }
  table[GridTable::late] = table.size(), table[GridTable::late_count] = work.late.size();
  table.insert(table.end(), work.late.begin(), work.late.end());
  return table;
}

}  // namespace meshpost::detail
