#pragma once
#include <meshpost/array/box.hpp>

#include <algorithm>

#include "scheme.hpp"

// Equations::advance for all cells of a box, by one thread of the host. It gives the same bits.
// Loops along rows become vector instructions, and nothing is computed twice along x and y.

namespace euler {

/// The cells of a row from x = first on, and some beyond both ends.
class Row {
 public:
  static constexpr i64 most = 64;  ///< cells; few enough for a fiber's stack

  template <class Field>
  void read(Equations const& equations, Field const& field, i64 first, i64 y, i64 z, i64 count) {
    for (u32 c = 0; c < components; ++c) u_[c] = &field(first, y, z, c);
    if (equations.is_behind_wall(z)) {
      for (i64 i = 0; i < count; ++i)
        lifted_[i + halo] = equations.lifted(u_[energy][i], u_[density][i], z);
      u_[energy] = lifted_ + halo;
    }
    derive(equations, 0, count);
  }
  /// Only the middle row of a cell's stencil has neighbours along x. The others must not read them:
  /// they may be cells that another part is sending.
  void derive_ends(Equations const& equations, i64 count) {
    derive(equations, -i64{halo}, 0);
    derive(equations, count, count + halo);
  }

  double u(u32 component, i64 i) const { return u_[component][i]; }
  double velocity(u32 direction, i64 i) const { return u_[1 + direction][i] * volume_[i + halo]; }
  double speed(u32 direction, i64 i) const {
    return std::fabs(velocity(direction, i)) + sound_[i + halo];
  }
  double flux(u32 component, u32 direction, i64 i) const {
    return Equations::flux(component, direction, u_[component][i], u_[1 + direction][i],
                           velocity(direction, i), pressure_[i + halo]);
  }

 private:
  void derive(Equations const& equations, i64 begin, i64 end) {
#pragma GCC ivdep
    for (i64 i = begin; i < end; ++i) {
      auto const gas = equations.gas({u_[0][i], u_[1][i], u_[2][i], u_[3][i], u_[4][i]});
      volume_[i + halo] = gas.volume, pressure_[i + halo] = gas.pressure;
      sound_[i + halo] = equations.damping * gas.sound;
    }
  }

  double const* u_[components];
  double volume_[most + 2 * halo], pressure_[most + 2 * halo], sound_[most + 2 * halo];
  double lifted_[most + 2 * halo];
};

/// Fluxes of all components through the faces of a row.
struct Faces {
  double f[components][Row::most + 1];
};

/// The faces between the rows b and c. Along x, all four are the same row, and its cells are
/// `apart`: then these are the faces before the cells.
template <u32 direction>
void set_faces(Faces& faces, Row const& a, Row const& b, Row const& c, Row const& d, i64 count,
               i64 apart = 0) {
#pragma GCC ivdep
  for (i64 i = 0; i < count; ++i) {
    double const speed = Equations::larger(b.speed(direction, i - apart), c.speed(direction, i));
    auto const set = [&](u32 k) {
      faces.f[k][i] = Equations::face(a.flux(k, direction, i - 2 * apart),
                                      b.flux(k, direction, i - apart), c.flux(k, direction, i),
                                      d.flux(k, direction, i + apart), a.u(k, i - 2 * apart),
                                      b.u(k, i - apart), c.u(k, i), d.u(k, i + apart), speed);
    };
    set(density), set(momentum_x), set(momentum_y), set(momentum_z), set(energy);
  }
}

template <class Now, class Begin, class Next>
void advance_rows(Equations const& equations, meshpost::Box const& box, Now const& now,
                  Begin const& begin, Next const& next, u32 stage) {
  double const weight = Equations::weight_of(stage);
  Row ring[5];    // of y - 2 to y + 2; row y is at y % 5
  Row around[4];  // of z - 2, z - 1, z + 1, z + 2
  Faces x_faces, y_faces[2], low, high;
  for (i64 z = box.begin.z; z < box.end.z; ++z)
    for (i64 x = box.begin.x; x < box.end.x; x += Row::most) {
      i64 const count = std::min(Row::most, box.end.x - x);
      auto const row = [&](i64 y) -> Row& { return ring[(y - box.begin.y + 2) % 5]; };
      for (i64 y = box.begin.y - 2; y < box.begin.y + 2; ++y)
        row(y).read(equations, now, x, y, z, count);
      i64 y = box.begin.y;
      set_faces<1>(y_faces[0], row(y - 2), row(y - 1), row(y), row(y + 1), count);
      for (; y < box.end.y; ++y) {
        row(y + 2).read(equations, now, x, y + 2, z, count);
        Row& here = row(y);
        here.derive_ends(equations, count);
        for (i64 k = 0; k < 4; ++k)
          around[k].read(equations, now, x, y, z + (k < 2 ? k - 2 : k - 1), count);
        Faces &lower = y_faces[(y - box.begin.y) % 2], &upper = y_faces[(y - box.begin.y + 1) % 2];
        set_faces<0>(x_faces, here, here, here, here, count + 1, 1);
        set_faces<1>(upper, row(y - 1), here, row(y + 1), row(y + 2), count);
        set_faces<2>(low, around[0], around[1], here, around[2], count);
        set_faces<2>(high, around[1], here, around[2], around[3], count);
        double after[Row::most];  // before it is stored, as `next` may be `begin`
        for (u32 c = 0; c < components; ++c) {
          double const* const old = &begin(x, y, z, c);
#pragma GCC ivdep
          for (i64 i = 0; i < count; ++i)
            after[i] =
                equations.after(c, here.u(c, i), old[i], here.u(density, i), here.u(momentum_z, i),
                                (equations.per_cell[0] * (x_faces.f[c][i + 1] - x_faces.f[c][i]) +
                                 equations.per_cell[1] * (upper.f[c][i] - lower.f[c][i])) +
                                    equations.per_cell[2] * (high.f[c][i] - low.f[c][i]),
                                weight);
          std::copy_n(after, count, &next(x, y, z, c));
        }
      }
    }
}

}  // namespace euler
