#pragma once
#include <string>
#include <vector>

#include "problem.hpp"

namespace euler {

/// All values of a field, with the place in the simulation that they belong to.
struct State {
  Problem problem;
  u64 step = 0;
  double time = 0, dt = 0;
  std::vector<double> values;  ///< [component][z][y][x]; empty: the problem's initial values

  double at(i64 x, i64 y, i64 z, u32 component) const {  ///< of values that are not empty
    return values[place(x, y, z, component)];
  }
  u64 place(i64 x, i64 y, i64 z, u32 component) const {
    auto const& n = problem.cells;
    return ((component * n.z + static_cast<u64>(z)) * n.y + static_cast<u64>(y)) * n.x +
           static_cast<u64>(x);
  }
  /// The largest signal_rate() of all cells.
  /// \throws Error(bad_argument) `given` names where the values are from; the message, a cell that
  /// is no gas
  double largest_rate(std::string const& given) const;
};

/// Writes the state as a file that appears when it is complete. \throws std::runtime_error
void save(std::string const& file, State const& state);

/// Reads such a file. \throws Error(bad_argument) naming the file, and what is wrong with it: it
/// can't be read, is no such file, was cut, or was changed
State load(std::string const& file);

}  // namespace euler
