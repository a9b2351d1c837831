#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/blas.hpp"
#include "common/command.hpp"
#include "plan.hpp"

namespace meshpost::gemm {

/// The checked values of the command line.
struct Options : apps::Common {
  std::vector<Problem> problems;  ///< without their grids
  std::optional<Grid> grid;       ///< else default_grid of the devices
  blas::Type type = blas::Type::float32;
  bool peer = true;
  u32 repeat = 5, threads = 0;  ///< threads of a CPU device; 0: its share of the cores
  u32 slots = 2;
  u64 panel = 0;  ///< 0: default_panel
  u64 seed = 0;
  Order order = Order::links;
  u64 memory = 0;          ///< bytes of each memory that may be used; 0: all but spare_memory
  bool largest = false;    ///< `problems` is to become the largest that fits
  u32 reuse = 1;           ///< products in a row, each result the next A
  bool schedules = false;  ///< measure other schedules too
  bool ipc = true;         ///< processes map each other's memory
};

/// The texts of the command line.
struct Texts {
  std::string size = "4096", sweep, grid, type = "float", peer = "on", order = "links", ipc = "on";
};
/// Parses the texts after the command line is read. \throws Error(bad_argument)
void read_texts(Texts const& texts, Options& options);

/// The sizes that a list of numbers and FIRST:LAST:STEP names, each once; "seed": those of the
/// thesis, with 11000 to 11050.
/// \throws Error(bad_argument)
std::vector<u64> parse_sweep(std::string const& text);
/// "1000" or "1000,2000,500", which is M,N,K. \throws Error(bad_argument)
Problem parse_size(std::string const& text);

/// \return the exit status: 1 if a product is wrong
int run(Options options);

}  // namespace meshpost::gemm
