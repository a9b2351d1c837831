#pragma once
#include <string>
#include <vector>

#include "blocks.hpp"
#include "common/command.hpp"
#include "measure.hpp"

namespace pingpong {

/// The command line.
struct Options : meshpost::apps::Common {
  std::string figure = "13";
  std::vector<std::string> modes{"host", "stream", "kernel"}, buffers{"device", "host"};
  std::vector<u64> sizes;  ///< bytes of a message; empty: those of the figure
  std::vector<u32> cubes;  ///< empty: those that suit the devices
  std::vector<u32> steps{1, 2, 5, 10, 20, 50, 100};
  std::vector<std::string> tasks{"1,1,1", "2,1,2", "6,1,6", "6,4,6"};
  std::string blocks;
  std::string fields;  ///< folder
  double kernel_us = -1;
  u32 trips = 0;  ///< 0: as many as suit the devices
  u32 repetitions = 7;
  u64 seed = 0;

  bool halo() const { return figure == "halo"; }
  bool has(Mode mode) const;
};

/// Sizes from 1 B to 4 MiB: powers of two, and 1.5 times these.
std::vector<u64> fine_sizes();

/// The devices of `options`, or a choice that fits the figure if it names none.
/// \throws Error(bad_argument)
std::string devices_of(Options const& options);

/// \return the exit status: 1 if something was wrong
int run_exchange(Options const& options);
int run_halo(Options const& options);

}  // namespace pingpong
