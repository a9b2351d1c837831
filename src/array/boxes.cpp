#include "meshpost/array/boxes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "array/box_text.hpp"
#include "base/hash.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {

// A tree over the boxes, so that a search does not look at all of them: each node is around the
// boxes of its two children.
struct Boxes::State {
  struct Node {
    Box around;
    u32 part = 0;             // of a leaf
    u32 left = 0, right = 0;  // nodes; 0 for a leaf
  };
  Extents3 extents;
  std::vector<Box> boxes;
  std::vector<Node> nodes{};

  State(Extents3 grid, std::vector<Box> all) : extents(grid), boxes(std::move(all)) {
    std::vector<u32> parts;
    for (u32 part = 0; part < boxes.size(); ++part)
      if (!boxes[part].empty()) parts.push_back(part);
    if (!parts.empty()) grow(parts);
  }
  u32 grow(std::span<u32> parts) {
    auto const number = static_cast<u32>(nodes.size());
    Box around = boxes[parts[0]];
    for (u32 const part : parts)
      for (u32 d = 0; d < 3; ++d) {
        around.begin[d] = std::min(around.begin[d], boxes[part].begin[d]);
        around.end[d] = std::max(around.end[d], boxes[part].end[d]);
      }
    nodes.push_back({around, parts[0]});
    if (parts.size() == 1) return number;
    u32 longest = 0;
    for (u32 d = 1; d < 3; ++d)
      if (around.extent(d) > around.extent(longest)) longest = d;
    auto const half = parts.size() / 2;
    std::ranges::nth_element(parts, parts.begin() + static_cast<std::ptrdiff_t>(half), std::less(),
                             [&](u32 part) { return boxes[part].begin[longest]; });
    u32 const left = grow(parts.first(half)), right = grow(parts.subspan(half));
    nodes[number].left = left, nodes[number].right = right;
    return number;
  }
  // Calls work(part) until it returns false.
  template <class Work>
  bool visit(Box const& box, Work&& work, u32 number = 0) const {
    if (number >= nodes.size()) return true;
    auto const& [around, part, left, right] = nodes[number];
    if (around.intersect(box).empty()) return true;
    if (left == 0) return work(part);
    return visit(box, work, left) && visit(box, work, right);
  }
};

namespace {

void check_grid(Extents3 extents, char const* call) {
  u64 const cells = detail::product_of(detail::product_of(extents.x, extents.y), extents.z);
  if (cells == 0)
    throw Error(Kind::bad_argument, call,
                fmt::format("a grid of {} cells was given", text_of(extents)),
                "give at least one cell in each dimension; extents that are left out are 1");
  if (cells >= u64{1} << 62)
    throw Error(
        Kind::bad_argument, call,
        fmt::format("a grid of {} cells was given, and 2^62 are too many", text_of(extents)),
        "give smaller extents");
}

void check_shares(std::span<double const> shares) {
  for (u64 part = 0; part < shares.size(); ++part)
    if (!(shares[part] >= 0) || std::isinf(shares[part]))
      throw Error(Kind::bad_argument, "Boxes::cut",
                  fmt::format("the share of part {} is {}", part, shares[part]),
                  "give each part a share from 0 on, for example its speed");
  double const total = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (!(total > 0) || std::isinf(total))
    throw Error(Kind::bad_argument, "Boxes::cut",
                fmt::format("the shares of {} parts add up to {}", shares.size(), total),
                "give at least one part a share above 0, and none that is huge");
}

class Cutter {
 public:
  Cutter(Extents3 extents, std::span<double const> shares, u32 dimensions)
      : boxes_(shares.size()), shares_(shares) {
    Box const grid = Box::of(extents);
    for (u32 d = 3; d-- > 0;)  // the slowest first
      if (grid.extent(d) > 1 && dimensions_.size() < dimensions) dimensions_.push_back(d);
    std::vector<u32> parts;
    for (u32 part = 0; part < shares.size(); ++part)
      if (shares[part] > 0) parts.push_back(part);
    if (u64 const most = pieces(grid); parts.size() > most)
      throw Error(
          Kind::bad_argument, "Boxes::cut",
          fmt::format("{} parts of a grid of {} cells were requested; cut in {} "
                      "dimension{}, it has {} at most",
                      parts.size(), text_of(extents), dimensions, dimensions == 1 ? "" : "s", most),
          "request fewer parts, give some a share of 0, or allow cuts in more dimensions");
    cut(grid, parts);
  }
  std::vector<Box> take() { return std::move(boxes_); }

 private:
  // Boxes that this one can be cut into.
  u64 pieces(Box const& box) const {
    u64 count = 1;
    for (u32 const d : dimensions_) count *= box.extent(d);
    return count;
  }
  double sum_of(std::span<u32 const> parts) const {
    double sum = 0;
    for (u32 const part : parts) sum += shares_[part];
    return sum;
  }

  void cut(Box const& box, std::span<u32 const> parts) {
    if (parts.size() == 1) {
      boxes_[parts[0]] = box;
      return;
    }
    auto by_length = dimensions_;
    std::ranges::sort(by_length, std::greater(),
                      [&](u32 d) { return std::pair(box.extent(d), d); });
    u64 half = parts.size() / 2;
    for (u32 const d : by_length) {
      // Each half must have room for a piece of each of its parts.
      u64 const layers = box.extent(d), each = pieces(box) / layers;
      u64 const least = (half + each - 1) / each,
                most = layers - std::min(layers, (parts.size() - half + each - 1) / each);
      if (least <= most)
        return cut(box, parts, half, d, std::clamp(wanted(parts, half, layers), least, most));
    }
    // So tight that the halves don't fit: other numbers of parts do, in the longest dimension.
    u32 const d = by_length[0];
    u64 const layers = box.extent(d), each = pieces(box) / layers;
    u64 const at = std::clamp<u64>(wanted(parts, half, layers), 1, layers - 1);
    u64 const behind = std::min<u64>(parts.size() - 1, (layers - at) * each);
    half = std::clamp<u64>(half, parts.size() - behind, std::min<u64>(parts.size() - 1, at * each));
    cut(box, parts, half, d, at);
  }
  u64 wanted(std::span<u32 const> parts, u64 half, u64 layers) const {
    double const share = sum_of(parts.first(half)) / sum_of(parts);
    return static_cast<u64>(std::llround(static_cast<double>(layers) * share));
  }
  void cut(Box const& box, std::span<u32 const> parts, u64 half, u32 d, u64 layers) {
    Box before = box, behind = box;
    before.end[d] = behind.begin[d] = box.begin[d] + static_cast<i64>(layers);
    cut(before, parts.first(half));
    cut(behind, parts.subspan(half));
  }

  std::vector<Box> boxes_;
  std::span<double const> shares_;
  std::vector<u32> dimensions_{};
};

// A cell of `region` that no box has, where there is one: the half that is not full has one.
Cell hole_in(Box region, std::vector<Box> const& boxes) {
  auto const full = [&](Box const& half) {
    u64 covered = 0;
    for (auto const& box : boxes) covered += box.intersect(half).cells();
    return covered == half.cells();
  };
  while (region.cells() > 1) {
    u32 longest = 0;
    for (u32 d = 1; d < 3; ++d)
      if (region.extent(d) > region.extent(longest)) longest = d;
    Box half = region;
    half.end[longest] = region.begin[longest] + static_cast<i64>(region.extent(longest) / 2);
    if (!full(half)) region = half;
    else region.begin[longest] = half.end[longest];
  }
  return region.begin;
}

}  // namespace

Boxes Boxes::cut(Extents3 extents, u32 parts, CutOptions const& options) {
  return cut(extents, std::vector<double>(parts, 1.0), options);
}

Boxes Boxes::cut(Extents3 extents, std::span<double const> shares, CutOptions const& options) {
  check_grid(extents, "Boxes::cut");
  if (options.dimensions == 0 || options.dimensions > 3)
    throw Error(Kind::bad_argument, "Boxes::cut",
                fmt::format("cuts in {} dimensions were requested", options.dimensions),
                "request 1, 2 or 3");
  if (shares.empty())
    throw Error(Kind::bad_argument, "Boxes::cut", "a grid in 0 parts was requested",
                "give at least one part");
  check_shares(shares);
  Cutter cutter(extents, shares, options.dimensions);
  return Boxes(std::make_shared<State const>(extents, cutter.take()));
}

Boxes Boxes::of(Extents3 extents, std::vector<Box> boxes) {
  constexpr char const* call = "Boxes::of";
  check_grid(extents, call);
  if (boxes.empty())
    throw Error(Kind::bad_argument, call, "no boxes were given", "give one for each part");
  Box const grid = Box::of(extents);
  u64 cells = 0;
  for (u32 part = 0; part < boxes.size(); ++part) {
    auto& box = boxes[part];
    if (!grid.contains(box))
      throw Error(Kind::bad_argument, call,
                  fmt::format("the box of part {}, {}, leaves the grid of {} cells", part,
                              text_of(box), text_of(extents)),
                  "give boxes inside the grid; `end` is behind the last cell");
    if (box.empty()) box = {};
  }
  auto const state = std::make_shared<State const>(extents, std::move(boxes));
  auto const& all = state->boxes;
  for (u32 part = 0; part < all.size(); ++part) {
    cells += all[part].cells();
    state->visit(all[part], [&](u32 other) {
      if (other == part) return true;
      throw Error(
          Kind::bad_argument, call,
          fmt::format("the boxes of parts {} and {} overlap: {} and {}", std::min(part, other),
                      std::max(part, other), text_of(all[std::min(part, other)]),
                      text_of(all[std::max(part, other)])),
          "give each cell to one box");
    });
  }
  if (cells < grid.cells())
    throw Error(Kind::bad_argument, call,
                fmt::format("no box has cell {}; {} of {} cells are in none",
                            text_of(hole_in(grid, all)), grid.cells() - cells, grid.cells()),
                "give boxes that cover the grid");
  return Boxes(state);
}

Extents3 Boxes::extents() const { return state_->extents; }
u32 Boxes::parts() const { return static_cast<u32>(state_->boxes.size()); }

Box const& Boxes::box(u32 part) const {
  if (part < parts()) return state_->boxes[part];
  throw Error(Kind::bad_argument, "Boxes::box",
              fmt::format("there is no part {}; the grid has {}", part, parts()),
              "number parts from 0");
}

u32 Boxes::owner_of(Cell cell) const {
  u32 owner = 0;
  if (!grid().contains(cell))
    throw Error(Kind::bad_argument, "Boxes::owner_of",
                fmt::format("there is no cell {} in the grid of {} cells", text_of(cell),
                            text_of(extents())),
                "number cells from 0 in each dimension");
  Box const one{cell, {cell.x + 1, cell.y + 1, cell.z + 1}};
  state_->visit(one, [&](u32 part) {
    owner = part;
    return false;
  });
  return owner;
}

void Boxes::each_in(Box const& box, std::function<void(u32 part)> const& work) const {
  state_->visit(box, [&](u32 part) {
    work(part);
    return true;
  });
}

std::string Boxes::describe() const {
  u64 least = ~u64{0}, most = 0;
  for (auto const& box : state_->boxes) {
    least = std::min(least, box.cells());
    most = std::max(most, box.cells());
  }
  return fmt::format(
      "{} cells in {} box{} of {}", text_of(extents()), parts(), parts() == 1 ? "" : "es",
      least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
}

u64 Boxes::fingerprint() const {
  auto const& boxes = state_->boxes;
  auto const [x, y, z] = extents();
  std::array const all{
      x, y, z,
      hash_of({reinterpret_cast<char const*>(boxes.data()), boxes.size() * sizeof boxes[0]})};
  return hash_of({reinterpret_cast<char const*>(all.data()), sizeof all});
}

bool Boxes::operator==(Boxes const& other) const {
  auto const [x, y, z] = extents();
  auto const there = other.extents();
  return x == there.x && y == there.y && z == there.z && state_->boxes == other.state_->boxes;
}

}  // namespace meshpost
