#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/figures.hpp"
#include "common/study/study.hpp"
#include "matrix.hpp"
#include "options.hpp"
#include "solver.hpp"

// The report of cg: lines of text, and figures for a file.

namespace cg {

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
