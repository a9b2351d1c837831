#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace cg {

using namespace meshpost;

namespace {

double ratio(double rho, double first) { return first > 0 ? std::sqrt(rho / first) : 0; }

u64 all_rows(Problem const& problem) { return problem.halo_plan().distribution().size(); }

// Seconds of an iteration.
double per_iteration(double seconds, ModeReport const& report) {
  return seconds / std::max(1u, report.outcome.result.iterations);
}

// Seconds of a run that belong to no phase.
double other(Outcome const& outcome) {
  double rest = outcome.seconds;
  for (double const phase : outcome.spent) rest -= phase;
  return rest > 1e-9 * outcome.seconds ? rest : 0;  // less is rounding
}

}  // namespace

void ModeReport::compare(World const& world, ModeReport const& first, bool same_bits) {
  double largest = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    largest = std::max(largest, std::abs(first.x[k]));
    differs = std::max(differs, std::abs(x[k] - first.x[k]));
  }
  if (largest > 0) differs /= largest;  // of this process
  bool const bits = std::memcmp(x.data(), first.x.data(), x.size() * sizeof(double)) == 0;
  equal = apps::in_all(world, bits);
  repeats = apps::in_all(world, repeats);
  good = !same_bits || (equal && repeats);
}

double last_residual(Outcome const& outcome) {
  return ratio(outcome.history.back(), outcome.history.front());
}

void print_problem(Problem const& problem, Matrix const& matrix) {
  for (auto const& device : problem.world().devices())
    std::printf("device      %s (%s)\n", device->name().c_str(), device->info().model.c_str());
  if (problem.world().processes() > 1)
    std::printf("processes   %u, with %u devices\n", problem.world().processes(),
                problem.world().device_count());
  std::printf("ranks       %u on each device\n", problem.world().ranks_per_device());
  std::printf("matrix      %s: %llu rows, %llu entries, in pieces of %llu rows\n",
              matrix.describe().c_str(), static_cast<unsigned long long>(matrix.rows()),
              static_cast<unsigned long long>(matrix.entries()),
              static_cast<unsigned long long>(problem.pieces().height));
  if (matrix.repeated() > 0)
    std::printf("            entries at %llu places are given more than once, and are added\n",
                static_cast<unsigned long long>(matrix.repeated()));
  for (u32 i = 0; i < problem.shares().size(); ++i) {
    auto const& share = problem.shares()[i];
    std::printf("  device %-3u %llu rows, %llu of them inner; %llu elements come from others\n",
                problem.first_device() + i, static_cast<unsigned long long>(share.own),
                static_cast<unsigned long long>(share.inner),
                static_cast<unsigned long long>(share.size - share.own));
  }
}

void print_mode(ModeReport const& report, Limits const& limits) {
  auto const& outcome = report.outcome;
  std::printf("%-11s %s\n", report.mode.c_str(), report.by.c_str());
  std::printf(
      "  %u iterations%s, |r| is %.3g |b|; |b - A x| is %.3g |b|\n", outcome.result.iterations,
      outcome.result.end == End::converged || limits.tolerance == 0 ? "" : " (NOT CONVERGED)",
      last_residual(outcome), report.true_residual);
  std::printf("  %.4g ms an iteration (%.4g to %.4g)\n",
              per_iteration(report.seconds.median(), report) * 1e3,
              per_iteration(report.seconds.lower(), report) * 1e3,
              per_iteration(report.seconds.upper(), report) * 1e3);
  // Their sum is the time of this run, not of the timed ones.
  std::printf("  %.4g ms in another run, for phases%s:\n",
              per_iteration(outcome.seconds, report) * 1e3,
              report.overlaps ? "" : ", in which nothing overlaps");
  for (u32 k = 0; k < phases; ++k)
    std::printf("    %-9s %.4g ms\n", phase_names[k],
                per_iteration(outcome.spent[k], report) * 1e3);
  std::printf("    %-9s %.4g ms\n", "other", per_iteration(other(outcome), report) * 1e3);
  if (!report.equal)
    std::printf("  x differs from that of the first mode by %.2g of its largest element%s\n",
                report.differs, report.good ? ", as the product adds in another order" : "");
  std::printf("  results     %s\n",
              report.good ? (report.equal ? "equal to the bit" : "checked") : "DIFFERENT");
}

nlohmann::json figures(Problem const& problem, Matrix const& matrix, Options const& options,
                       std::vector<ModeReport> const& reports) {
  auto const& world = problem.world();
  nlohmann::json devices = nlohmann::json::array(), runs = nlohmann::json::array();
  for (auto const& device : world.devices())
    devices.push_back(device->name() + " (" + device->info().model + ")");
  for (auto const& report : reports) {
    auto const& outcome = report.outcome;
    std::vector<double> residuals;
    for (double const rho : outcome.history)
      residuals.push_back(ratio(rho, outcome.history.front()));
    nlohmann::json spent;
    for (u32 k = 0; k < phases; ++k)
      spent[phase_names[k]] = per_iteration(outcome.spent[k], report);
    spent["other"] = per_iteration(other(outcome), report);
    apps::Samples iteration;
    for (double const seconds : report.seconds.values())
      iteration.add(per_iteration(seconds, report));
    runs.push_back({{"mode", report.mode},
                    {"by", report.by},
                    {"iterations", outcome.result.iterations},
                    {"converged", outcome.result.end == End::converged},
                    {"residuals", residuals},
                    {"true_residual", report.true_residual},
                    {"iteration", apps::json_of(iteration)},
                    {"spent", spent},
                    {"spent_overlaps", report.overlaps},
                    {"equal_to_first", report.equal},
                    {"good", report.good}});
  }
  return {{"devices", devices},
          {"device_count", world.device_count()},
          {"processes", world.processes()},
          {"ranks_per_device", world.ranks_per_device()},
          {"matrix", options.matrix.file},
          {"description", matrix.describe()},
          {"laplacian", options.matrix.laplacian},
          {"grid", options.matrix.grid},
          {"shift", options.matrix.shift},
          {"seed", options.seed},
          {"n", all_rows(problem)},
          {"entries", matrix.entries()},
          {"tolerance", options.limits.tolerance},
          {"limit", options.limits.iterations},
          {"runs", runs}};
}

}  // namespace cg
