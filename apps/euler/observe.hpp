#pragma once
#include <meshpost/array/box.hpp>

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "restart.hpp"

namespace euler {

/// Sums over a field, which tell how the simulation goes.
struct Frame {
  u64 step = 0;
  double time = 0;
  double mass = 0, kinetic = 0, energy = 0;  ///< energy: with that of the height
  double courant = 0;                        ///< of the fastest cell with the step that is used
  /// Amplitudes of the speed along z where the gases met at first, of waves with (1, 0), (0, 1) and
  /// (1, 1) periods along x and y.
  double modes[3]{};
};
nlohmann::json json_of(Frame const& frame);

/// Looks at a field, part by part.
class Observer {
 public:
  explicit Observer(Problem const& problem);

  /// Takes the cells of `box`, which are no other part's: x fastest, component by component.
  void add(meshpost::Box const& box, std::span<double const> values);

  /// When all cells have been added. `state`: step, time and dt.
  /// \throws Error(kernel_failed) naming the cell and the step, if a cell has no positive density
  /// and pressure, or if the flow has become too fast for the step
  Frame frame(State const& state) const;
  /// Density in the plane in the middle of y: [z][x].
  std::vector<double> const& slice() const { return slice_; }

 private:
  // As exact as the host can: sums of up to 10^8 values must show a lost last digit.
  struct Sums {
    long double mass = 0, kinetic = 0, energy = 0, modes[3]{};
  };

  Problem problem_;
  Sums sums_;
  std::vector<double> slice_;
  std::vector<double> wave_[2];  // one period of a cosine, by cell along x and along y
  double fastest_ = 0;           // signal_rate(); NaN: of a cell that is no gas
  meshpost::Cell where_{};
};

/// Cells whose mirror image in x or in y differs, in any bit. Zeros may differ in their signs.
u64 asymmetric_cells(State const& state);

}  // namespace euler
