#pragma once
#include <meshpost/base/strided.hpp>

#include <span>
#include <vector>

#include "scheme.hpp"

namespace euler {

/// The Rayleigh-Taylor instability of Athena++: a gas of density 2 lies on one of density 1. The
/// box is periodic in x and y, with walls below and above. README.md cites the source.
struct Problem {
  static constexpr double gamma = 5.0 / 3.0, gravity = -0.1;
  static constexpr double heavy = 2, light = 1;       ///< densities above and below z = 0
  static constexpr double width = 0.1, height = 0.2;  ///< of the box, in x and y, and in z
  /// The Courant number up to which the scheme is stable (README.md), and the largest one at the
  /// beginning: a flow becomes faster.
  static constexpr double stable_cfl = 1.25, most_cfl = 1;

  /// Of the speed of sound. All of it would halve the growth of a wave of 16 cells; with less, the
  /// densities of a long run overshoot more (README.md).
  static constexpr double damping = 0.1;

  meshpost::Extents3 cells;
  double amplitude = 0.01;  ///< largest speed of the perturbation

  double size(u32 direction) const {  ///< of a cell
    return direction == 0   ? width / static_cast<double>(cells.x)
           : direction == 1 ? width / static_cast<double>(cells.y)
                            : height / static_cast<double>(cells.z);
  }
  double volume() const { return size(0) * size(1) * size(2); }  ///< of a cell
  Equations equations(double dt) const;
  /// The initial state's signal_rate(), of all cells.
  double initial_rate() const;
};

/// The values at the beginning. Mirrored cells have the same bits.
class InitialState {
 public:
  explicit InitialState(Problem const& problem);
  double at(i64 x, i64 y, i64 z, u32 component) const;

 private:
  Problem problem_;
  std::vector<double> bumps_[3];  // of the perturbation, by direction and cell
};

/// Sum over the directions of (|velocity| + speed of sound) / size of the cell. A step of dt has
/// the Courant number dt times the largest. `u`: the components of a cell. Not a number for a cell
/// without a positive density or pressure.
double signal_rate(Problem const& problem, double const (&u)[components]);

/// Growth rate of a small wave with `modes` waves along x and y by linear theory, of two layers of
/// incompressible fluid between walls: sqrt(A g k tanh(k H)).
double growth_rate(u32 x_modes, u32 y_modes);

}  // namespace euler
