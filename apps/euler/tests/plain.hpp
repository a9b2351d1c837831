#pragma once
#include <functional>
#include <vector>

#include "euler/problem.hpp"
#include "euler/rows.hpp"

// The scheme as plain loops over one array, for tests of the formulas alone.

namespace euler {

class PlainField {
 public:
  explicit PlainField(meshpost::Extents3 cells)
      : cells_(cells),
        values_((cells.x + 2 * halo) * (cells.y + 2 * halo) * (cells.z + 2 * halo) * components) {}
  double& operator()(i64 x, i64 y, i64 z, u32 component = 0) const {
    u64 const column = static_cast<u64>(x + halo), row = static_cast<u64>(y + halo),
              layer = static_cast<u64>(z + halo);
    u64 const cell = (layer * (cells_.y + 2 * halo) + row) * (cells_.x + 2 * halo) + column;
    return values_[component * (values_.size() / components) + cell];
  }

 private:
  meshpost::Extents3 cells_;
  std::vector<double> mutable values_;
};

class Plain {
 public:
  using Value = std::function<double(i64 x, i64 y, i64 z, u32 component)>;

  /// `walls`: in z; otherwise it is periodic too.
  Plain(Problem const& problem, bool walls, Value const& begin)
      : cells_(problem.cells), walls_(walls), fields_(3, PlainField(cells_)) {
    each_cell([&](i64 x, i64 y, i64 z) {
      for (u32 c = 0; c < components; ++c) fields_[0](x, y, z, c) = begin(x, y, z, c);
    });
  }

  /// `rows`: by rows.hpp, in tiles.
  void run(Equations const& equations, u32 steps, bool rows = false) {
    for (u32 stage = 0; stage < 3 * steps; ++stage) {
      PlainField const &now = fields_[stage % 3], &next = fields_[(stage + 1) % 3];
      fill_halo(now);
      if (rows) run_tiles(equations, now, next, stage % 3);
      else
        each_cell([&](i64 x, i64 y, i64 z) {
          equations.advance(now, fields_[0], next, x, y, z, stage % 3);
        });
    }
  }

  double at(i64 x, i64 y, i64 z, u32 component) const { return fields_[0](x, y, z, component); }
  double sum(u32 component) const {
    double all = 0;
    each_cell([&](i64 x, i64 y, i64 z) { all += at(x, y, z, component); });
    return all;
  }
  template <class Work>
  void each_cell(Work const& work) const {
    for (i64 z = 0; z < static_cast<i64>(cells_.z); ++z)
      for (i64 y = 0; y < static_cast<i64>(cells_.y); ++y)
        for (i64 x = 0; x < static_cast<i64>(cells_.x); ++x) work(x, y, z);
  }

 private:
  void run_tiles(Equations const& equations, PlainField const& now, PlainField const& next,
                 u32 stage) const {
    constexpr i64 size = 5;
    auto const nx = static_cast<i64>(cells_.x), ny = static_cast<i64>(cells_.y),
               nz = static_cast<i64>(cells_.z);
    for (i64 z = 0; z < nz; z += size)
      for (i64 y = 0; y < ny; y += size)
        advance_rows(equations, {{0, y, z}, {nx, std::min(y + size, ny), std::min(z + size, nz)}},
                     now, fields_[0], next, stage);
  }

  void fill_halo(PlainField const& field) const {
    i64 const n[3] = {static_cast<i64>(cells_.x), static_cast<i64>(cells_.y),
                      static_cast<i64>(cells_.z)};
    constexpr i64 h = halo;
    for (i64 z = -h; z < n[2] + h; ++z)
      for (i64 y = -h; y < n[1] + h; ++y)
        for (i64 x = -h; x < n[0] + h; ++x) {
          bool const behind = walls_ && (z < 0 || z >= n[2]);
          i64 const mirror = z < 0 ? -1 - z : 2 * n[2] - 1 - z;
          for (u32 c = 0; c < components; ++c) {
            double const value =
                field((x + n[0]) % n[0], (y + n[1]) % n[1], behind ? mirror : (z + n[2]) % n[2], c);
            field(x, y, z, c) = behind ? Equations::mirrored(value, c, 1u << 2) : value;
          }
        }
  }

  meshpost::Extents3 cells_;
  bool walls_;
  std::vector<PlainField> fields_;
};

}  // namespace euler
