// Conjugate gradients over all devices: in one kernel, or as kernels between which the host or
// streams move halos and sums.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "report.hpp"

namespace {

using namespace meshpost;

// The modes, each once.
std::vector<std::string> modes_of(cg::Options const& options) {
  if (options.mode == "all") return {"kernel", "host", "stream"};
  return {options.mode};
}

std::unique_ptr<cg::Solver> make_solver(std::string const& mode, cg::Problem const& problem,
                                        cg::Options const& options) {
  if (mode == "kernel")
    return cg::make_kernel_solver(problem, options.limits.iterations, options.threads,
                                  options.trace);
  if (mode == "stream")
    return cg::make_stream_solver(problem, options.limits.iterations, options.cusparse);
  return cg::make_host_solver(problem, options.against, options.cusparse);
}

// Throws if the matrix can't be solved by this method. In all processes alike.
void check_end(cg::Outcome const& outcome, std::string const& matrix) {
  auto const& result = outcome.result;
  std::string const where =
      "cg, iteration " + std::to_string(result.iterations + 1) + " of " + matrix;
  char text[128];
  if (result.end == cg::End::not_positive) {
    std::snprintf(text, sizeof text, "p'Ap is %.6g, so the matrix is not positive definite",
                  result.curvature);
    throw Error(Kind::bad_argument, where, text,
                "name a positive definite matrix, or add to its diagonal by --shift");
  }
  if (result.end == cg::End::not_finite) {
    bool const residual = !cg::Limits::finite(outcome.history.back());
    std::snprintf(text, sizeof text, "%s is %g, no finite number", residual ? "r'r" : "p'Ap",
                  residual ? outcome.history.back() : result.curvature);
    throw Error(Kind::bad_argument, where, text,
                "scale the matrix so that products of its elements are finite");
  }
}

// Solves once to warm up, then `repetitions` times, then once with a clock for each phase.
cg::ModeReport measure(cg::Solver& solver, cg::Problem const& problem, cg::Options const& options,
                       std::string const& matrix) {
  cg::ModeReport report{.mode = solver.name(), .by = solver.describe()};
  report.overlaps = solver.overlaps_in_phases();
  for (u32 k = 0; k < options.repetitions + 2; ++k) {
    bool const phases = k == options.repetitions + 1;
    auto outcome = solver.solve(options.limits, phases);
    check_end(outcome, matrix);
    auto const x = problem.own(problem.layout().x());
    if (k == 0) report.x = x;
    // memcmp: NaNs are compared, too
    else if (std::memcmp(x.data(), report.x.data(), x.size() * sizeof(double)) != 0)
      report.repeats = false;
    if (k > 0 && !phases) report.seconds.add(outcome.seconds);
    report.outcome = std::move(outcome);
  }
  report.true_residual = problem.residual_of_q();
  return report;
}

// On CPU devices a rank for each core: more of them would only take turns, because all wait for
// the same sums. 0: the devices' default.
u32 default_ranks(std::string const& spec) {
  auto const devices = open_devices(spec);
  u32 cores = 0;
  for (auto const& device : devices) {
    if (device->kind() != "cpu") return 0;
    cores = std::max(cores, device->info().processors);
  }
  return devices.empty() ? 0 : std::max(1u, cores / static_cast<u32>(devices.size()));
}

}  // namespace

int cg::run(Options const& options) {
  WorldOptions where;
  where.devices = options.devices;
  where.ranks = options.ranks > 0 ? options.ranks : default_ranks(options.devices);
  World world(where);
  Matrix const matrix(options.matrix);
  Problem const problem(world, matrix, options.shares, options.seed, options.lanes);
  bool const first = world.process() == 0;
  if (first) print_problem(problem, matrix);

  std::vector<ModeReport> reports;
  for (auto const& mode : modes_of(options)) {
    auto const solver = make_solver(mode, problem, options);
    auto& report = reports.emplace_back(measure(*solver, problem, options, matrix.describe()));
    report.compare(world, reports.front(), solver->same_bits());
    if (first) print_mode(report, options.limits);
  }
  bool good = true, converged = true;
  for (auto const& report : reports) {
    good = good && report.good;
    auto const end = report.outcome.result.end;
    converged = converged && (end == End::converged || options.limits.tolerance == 0);
  }
  if (first) {
    if (!options.output.empty()) {
      auto const x = problem.whole_x();
      apps::write_npy(options.output, "<f8", {x.size()}, std::as_bytes(std::span(x)));
    }
    if (!options.json.empty())
      apps::write_figures(options.json, figures(problem, matrix, options, reports));
    if (!converged)
      std::fprintf(stderr,
                   "cg: no convergence: |r| is %.3g |b| after %u iterations, and --tolerance is "
                   "%g; raise --iterations or --tolerance\n",
                   last_residual(reports.front().outcome), options.limits.iterations,
                   options.limits.tolerance);
  }
  return good && converged ? 0 : 1;
}
