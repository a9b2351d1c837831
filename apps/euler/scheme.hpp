#pragma once
#include <meshpost/base/types.hpp>

#include <cmath>

namespace euler {

using meshpost::i64;
using meshpost::u32;
using meshpost::u64;

/// The values of a cell, all per volume: density, three momenta, energy (internal and kinetic).
enum Component : u32 { density, momentum_x, momentum_y, momentum_z, energy };
inline constexpr u32 components = 5;
inline constexpr u32 halo = 2;  ///< cells that the scheme reads on each side, in each direction

/// Derived from the values of a cell.
struct Gas {
  double volume;  ///< 1 / density
  double pressure;
  double sound;  ///< speed of it
};

/// A cell as fluxes in one direction need it.
struct Point {
  double u[components];
  double velocity;  ///< in the direction
  double pressure;
  double speed;  ///< by which a face damps: |velocity| and a part of the speed of sound
};

/// The 3-D compressible Euler equations of an ideal gas with gravity along z. README.md has the
/// formulas.
///
/// Results are the same bits on every device and in NumPy, so no sum is reordered: reference.py has
/// the same brackets. Brackets are chosen so that a mirrored field gives the mirrored result, and
/// so that both cells beside a face get the same bits for its flux: then mass is only moved.
/// rows.hpp has the same computation for one thread.
struct Equations {
  double gamma, gravity;  ///< gravity: the acceleration along z, negative if it points down
  double dt;
  double per_cell[3];  ///< 1 / (12 h), by direction: face() is 12 times the flux
  double hydrostatic;  ///< change of the energy from a cell to the one above, over the density
  i64 height;          ///< cells between the walls
  double damping;      ///< part of the speed of sound by which a face damps

  /// The cell at (x, y, z). A cell behind a wall holds the mirrored values, and this lifts its
  /// pressure to that of a column at rest, as Athena++ does. Otherwise the wall would send out
  /// waves.
  template <class Field>
  MESHPOST_FN Point point(Field const& field, i64 x, i64 y, i64 z, u32 direction) const {
    Point p;
    for (u32 c = 0; c < components; ++c) p.u[c] = field(x, y, z, c);
    if (direction == 2 && is_behind_wall(z)) p.u[energy] = lifted(p.u[energy], p.u[density], z);
    auto const [volume, pressure, sound] = gas(p.u);
    p.velocity = p.u[1 + direction] * volume;
    p.pressure = pressure;
    p.speed = std::fabs(p.velocity) + damping * sound;
    return p;
  }

  MESHPOST_FN bool is_behind_wall(i64 z) const { return z < 0 || z >= height; }
  MESHPOST_FN double lifted(double value, double mass, i64 z) const {
    i64 const cells = z < 0 ? 2 * z + 1 : 2 * (z - height) + 1;  // from its mirror image to it
    return value + static_cast<double>(cells) * (hydrostatic * mass);
  }

  MESHPOST_FN Gas gas(double const (&u)[components]) const {
    double const volume = 1.0 / u[density];
    double const kinetic = 0.5 * (((u[momentum_x] * u[momentum_x] + u[momentum_y] * u[momentum_y]) +
                                   u[momentum_z] * u[momentum_z]) *
                                  volume);
    double const pressure = (gamma - 1.0) * (u[energy] - kinetic);
    return {volume, pressure, std::sqrt(gamma * pressure * volume)};
  }

  /// The flux of a component in a cell. `value`: of the component; `momentum`: in the direction.
  MESHPOST_FN static double flux(u32 component, u32 direction, double value, double momentum,
                                 double velocity, double pressure) {
    if (component == density) return momentum;
    if (component == energy) return (value + pressure) * velocity;
    double const carried = value * velocity;
    return component == 1 + direction ? carried + pressure : carried;
  }

  /// 12 times the flux of a component through the face between the cells b and c. a and d are the
  /// cells behind them. f: fluxes in the cells; u: values; speed: the larger one of b and c.
  MESHPOST_FN static double face(double fa, double fb, double fc, double fd, double ua, double ub,
                                 double uc, double ud, double speed) {
    return (7.0 * (fb + fc) - (fa + fd)) + speed * (3.0 * (ub - uc) + (ud - ua));
  }
  MESHPOST_FN static double larger(double b, double c) { return b > c ? b : c; }

  MESHPOST_FN static double face(Point const& a, Point const& b, Point const& c, Point const& d,
                                 u32 component, u32 direction) {
    auto const f = [&](Point const& p) {
      return flux(component, direction, p.u[component], p.u[1 + direction], p.velocity, p.pressure);
    };
    return face(f(a), f(b), f(c), f(d), a.u[component], b.u[component], c.u[component],
                d.u[component], larger(b.speed, c.speed));
  }

  /// The flow out of the cell (x, y, z) in one direction, per volume and time.
  template <u32 direction, class Field>
  MESHPOST_FN void outflow(Field const& field, i64 x, i64 y, i64 z,
                           double (&out)[components]) const {
    constexpr i64 dx = direction == 0, dy = direction == 1, dz = direction == 2;
    Point const a = point(field, x - 2 * dx, y - 2 * dy, z - 2 * dz, direction),
                b = point(field, x - dx, y - dy, z - dz, direction),
                c = point(field, x, y, z, direction),
                d = point(field, x + dx, y + dy, z + dz, direction),
                e = point(field, x + 2 * dx, y + 2 * dy, z + 2 * dz, direction);
    for (u32 k = 0; k < components; ++k)
      out[k] =
          per_cell[direction] * (face(b, c, d, e, k, direction) - face(a, b, c, d, k, direction));
  }

  /// A stage of a Runge-Kutta step for one cell: `now` is the field of this stage, `begin` that of
  /// the step's begin, `next` the result. Reads `begin` at the same cell only, so `next` may be it.
  template <class Now, class Begin, class Next>
  MESHPOST_FN void advance(Now const& now, Begin const& begin, Next const& next, i64 x, i64 y,
                           i64 z, u32 stage) const {
    double along_x[components], along_y[components], along_z[components];
    outflow<0>(now, x, y, z, along_x);
    outflow<1>(now, x, y, z, along_y);
    outflow<2>(now, x, y, z, along_z);
    double const mass = now(x, y, z, density), rising = now(x, y, z, momentum_z);
    for (u32 c = 0; c < components; ++c)
      next(x, y, z, c) = after(c, now(x, y, z, c), begin(x, y, z, c), mass, rising,
                               (along_x[c] + along_y[c]) + along_z[c], weight_of(stage));
  }

  /// The value of a component after a stage. `old`: at the step's begin; mass and rising: of now.
  MESHPOST_FN double after(u32 component, double now, double old, double mass, double rising,
                           double out, double weight) const {
    double const force = component == momentum_z ? gravity * mass
                         : component == energy   ? gravity * rising
                                                 : 0.0;
    return old + weight * ((now - old) + dt * (force - out));
  }

  /// Shu and Osher's coefficients. As a change of the old value: rounding of 1/3 + 2/3 would lose
  /// mass in every step.
  MESHPOST_FN static double weight_of(u32 stage) {
    return stage == 0 ? 1.0 : stage == 1 ? 0.25 : 2.0 / 3.0;
  }

  /// A value of a cell behind a wall: the momentum towards it changes its sign. Bits of `axes`: the
  /// dimensions that are mirrored.
  MESHPOST_FN static double mirrored(double value, u32 component, u32 axes) {
    bool const momentum = component >= momentum_x && component <= momentum_z;
    return momentum && (axes >> (component - momentum_x) & 1) != 0 ? -value : value;
  }
};

}  // namespace euler
