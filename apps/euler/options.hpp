#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/command.hpp"
#include "restart.hpp"

namespace euler {

inline constexpr u64 most_steps = u64{1} << 40;

/// The command line.
struct Options : meshpost::apps::Common {
  std::string grid;  ///< cells along x, y, z; empty: of the restart file, or 24x24x48
  u64 steps = 100;
  // Empty: not given.
  std::optional<double> time, dt, cfl, amplitude;
  std::string execution = "one-kernel", exchange = "direct", shares;
  u32 threads = 0;            ///< of a rank on a GPU; 0: the default
  u64 check_every = 10;       ///< steps from one search for NaN to the next
  u64 every = 0;              ///< steps from frame to frame; 0: by frames
  u64 frames = 1;             ///< behind the first, at most
  u32 repetitions = 0;        ///< timed runs after the first; 0: the first counts
  std::string restart, save;  ///< files; empty: none
  std::string slices, initial, output;
};

/// \return the exit status: 1 if the result is wrong
int run(Options options);

/// Where the run begins, and its dt. Reads the restart file. Sets steps and every of the options.
/// \throws Error(bad_argument) naming the option: a file that can't be used, a grid that is too
/// small or is not the file's, a step above the limit
State begin(Options& options);

/// Reads "1,2.5,1". \throws Error(bad_argument) naming the option and the text
std::vector<double> read_shares(std::string const& text);

}  // namespace euler
