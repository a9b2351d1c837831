#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/figures.hpp"
#include "common/study/study.hpp"
#include "matrix.hpp"
#include "solver.hpp"

// The command line of cg, and what it prints and writes.

namespace cg {

struct Options : meshpost::apps::Common {
  MatrixOptions matrix;
  Limits limits{1000, 1e-8};
  std::string mode = "all", against = "auto";
  std::vector<double> shares;
  u64 seed = 1;
  u32 repetitions = 3;
  u32 lanes = 0;       ///< threads of a GPU that share a row; 0: by the mean length of rows
  u32 threads = 1024;  ///< of the ranks of a multiprocessor together
  bool cusparse = true;
  std::string output, trace;
};

void add_options(CLI::App& app, Options& options);

/// How a mode did.
struct ModeReport {
  std::string mode, by;
  Outcome outcome{};  ///< of the last run, which measured phases
  meshpost::apps::Samples seconds{};
  std::vector<double> x{};   ///< of the first run, in this process
  double true_residual = 0;  ///< |b - A x| / |b|
  bool overlaps = true;      ///< products and exchanges in the run that measured phases
  bool repeats = true;       ///< all runs have the same x, bit for bit
  bool equal = true;         ///< to the first mode, bit for bit
  double differs = 0;        ///< from it, at most, as part of the largest element
  bool good = true;          ///< equal where that is promised

  /// Fills in `equal`, `differs` and `good`. `same_bits`: this mode must give the first one's bits,
  /// and its own again. Collective.
  void compare(meshpost::World const& world, ModeReport const& first, bool same_bits);
};

/// |r| / |b| at the end.
double last_residual(Outcome const& outcome);

void print_problem(Problem const& problem, Matrix const& matrix);
void print_mode(ModeReport const& report, Limits const& limits);
nlohmann::json figures(Problem const& problem, Matrix const& matrix, Options const& options,
                       std::vector<ModeReport> const& reports);

}  // namespace cg
