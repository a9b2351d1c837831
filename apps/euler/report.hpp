#pragma once
#include <meshpost/rma/world.hpp>

#include <optional>
#include <string>
#include <vector>

#include "observe.hpp"
#include "options.hpp"

namespace euler {

/// Times of the timed runs.
struct Times {
  std::vector<double> seconds;  ///< of all steps
  /// Of other runs, the seconds in which no device computed: the exchange adds them. Empty: not
  /// measured.
  std::vector<double> waiting;
};

struct Checks {
  u64 differing = 0;   ///< cells whose bits are not those of one device
  u64 asymmetric = 0;  ///< cells that are not their mirror images
};

/// The findings of a run, in process 0. The other processes have its first line.
struct Outcome {
  u32 process = 0, processes = 1, device_count = 0, ranks_per_device = 0;
  std::vector<std::string> devices;  ///< of this process
  std::string reference;             ///< the device to compare with
  std::string cut;                   ///< how the grid is cut, in words
  Times times;
  std::vector<Frame> frames;
  std::vector<double> slices;  ///< [frame][z][x]
  State end;                   ///< with values, if they are wanted
  std::optional<Checks> checks;
};

Outcome outcome_of(meshpost::World const& world);

/// Cells that differ in any bit.
u64 differing_cells(State const& a, State const& b);

/// Prints what was found, and writes the files. True if all checks passed.
/// \throws std::runtime_error naming a file that can't be written
bool report(Options const& options, State const& start, Outcome const& outcome);

}  // namespace euler
