#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/blas.hpp"
#include "plan.hpp"

namespace meshpost::gemm {

/// What the command line says, checked.
struct Options {
  std::string devices;
  std::vector<Problem> problems;  ///< without their grids
  std::optional<Grid> grid;       ///< else default_grid of the devices
  blas::Type type = blas::Type::float32;
  bool peer = true, check = true;
  u32 repeat = 5, threads = 0;  ///< threads of a CPU device; 0: its share of the cores
  u32 slots = 2;
  u64 panel = 0;  ///< 0: default_panel
  u64 seed = 0;
  std::string json, progress = "auto";
};

/// Reads the command line; the exit status, if the program is to end with it: 0 after --help, 2
/// after a message about a wrong argument.
std::optional<int> parse(int argc, char** argv, Options& options);

/// The sizes that a list of numbers and FIRST:LAST:STEP names; "seed": those of the thesis.
/// \throws Error(bad_argument)
std::vector<u64> parse_sweep(std::string const& text);
/// "1000" or "1000,2000,500", which is M,N,K. \throws Error(bad_argument)
Problem parse_size(std::string const& text);

}  // namespace meshpost::gemm
