// Runs one case study as a plain program of one device. Its options are those of the application,
// so both can be given the same.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/figures.hpp"
#include "common/sparse/problem.hpp"
#include "common/study/samples.hpp"
#include "options.hpp"
#include "plain.hpp"
#include "stencil/initial.hpp"

namespace {

using namespace meshpost;
using plain::Options;
using plain::Version;

/// A version, and how a file holds its result.
struct Chosen {
  std::unique_ptr<Version> version;
  std::string type;
  std::vector<u64> shape;
};

[[noreturn]] void refuse_on(std::string const& on) {
  apps::refuse("--on " + on, "this program was built without it",
               on == "cpu" ? "install OpenMP of the compiler, and build it again"
                           : "build it by the preset cuda");
}

// Each calls the maker of the kind of device that --on names.
template <class Problem>
std::unique_ptr<Version> make(std::string const& on, Problem const& problem) {
#if defined(MESHPOST_PLAIN_OPENMP)
  if (on == "cpu") return plain::openmp::make(problem);
#endif
#if defined(MESHPOST_PLAIN_CUDA)
  if (on == "cuda") return plain::cuda::make(problem);
#endif
  static_cast<void>(problem);
  refuse_on(on);
}
std::unique_ptr<Version> make_sparse(std::string const& on, plain::SparseProblem const& problem,
                                     bool power) {
#if defined(MESHPOST_PLAIN_OPENMP)
  if (on == "cpu")
    return power ? plain::openmp::make_power_iteration(problem) : plain::openmp::make_spmv(problem);
#endif
#if defined(MESHPOST_PLAIN_CUDA)
  if (on == "cuda")
    return power ? plain::cuda::make_power_iteration(problem) : plain::cuda::make_spmv(problem);
#endif
  static_cast<void>(problem), static_cast<void>(power);
  refuse_on(on);
}

int measure(std::string const& study, Chosen const& chosen, Options const& options) {
  auto& version = *chosen.version;
  apps::Samples times;
  std::vector<std::byte> result;
  bool identical = true;
  for (u32 repetition = 0; repetition <= options.repetitions; ++repetition) {
    version.reset();
    auto const begin = std::chrono::steady_clock::now();
    version.run();
    std::chrono::duration<double> const time = std::chrono::steady_clock::now() - begin;
    auto one = version.result();
    if (repetition == 0) {  // it touches memory for the first time
      result = std::move(one);
      continue;
    }
    identical = identical && one == result;
    times.add(time.count());
  }
  std::printf("%s, %s: %.4g ms (%.4g to %.4g), results %s\n", study.c_str(),
              options.on == "cpu" ? "OpenMP" : "CUDA", times.median() * 1e3, times.lower() * 1e3,
              times.upper() * 1e3, identical ? "equal to the bit" : "DIFFERENT");
  if (!options.output.empty()) apps::write_npy(options.output, chosen.type, chosen.shape, result);
  if (!options.json.empty())
    apps::write_figures(options.json, {{"study", study},
                                       {"on", options.on},
                                       {"steps", options.steps},
                                       {"plain", apps::json_of(times)},
                                       {"identical", identical}});
  return identical ? 0 : 1;
}

int run_stencil(Options const& options) {
  plain::StencilProblem problem{
      {options.levels, options.rows, options.columns, 1}, options.steps, {}};
  auto const& grid = problem.grid;
  if (grid.field_size() >= u64{1} << 31)
    apps::refuse("--rows " + std::to_string(options.rows),
                 "a field has " + std::to_string(grid.field_size()) + " points",
                 "choose fewer than 2^31");
  problem.initial.resize(grid.rows * grid.row_size());
  for (u64 i = 0; i < problem.initial.size(); ++i)
    problem.initial[i] = stencil::value_at(i, options.seed);
  return measure("stencil",
                 {make(options.on, problem), "<f4", {grid.rows, grid.levels, grid.columns}},
                 options);
}

int run_diffusion(Options const& options) {
  plain::DiffusionProblem const problem{diffusion::read_field(options.input), options.steps};
  auto const& field = problem.field;
  if (field.rows < 5 || field.columns < 5 || field.levels < 1)
    apps::refuse("--input " + options.input,
                 std::to_string(field.rows) + " rows and " + std::to_string(field.columns) +
                     " columns are too few",
                 "give at least 5 of each, and a level");
  return measure("diffusion",
                 {make(options.on, problem), "<f8", {field.levels, field.rows, field.columns}},
                 options);
}

int run_particles(Options options) {
  options.particles.steps = options.steps;
  auto const problem = particles::make_problem(options.particles, 1);
  return measure("particles", {make(options.on, problem), "<f8", {problem.particles, 5}}, options);
}

int run_sparse(std::string const& name, Options const& options) {
  bool const power = name == "power_iteration";
  apps::sparse::Problem const whole(options.matrix, {1}, 1, 1);
  plain::SparseProblem const problem{
      whole.whole(), {whole.vector(0), whole.vector(1)}, options.steps};
  return measure(name, {make_sparse(options.on, problem, power), "<f8", {whole.n()}}, options);
}

}  // namespace

int plain::run(Options options) {
  if (options.steps == 0) options.steps = options.study == "stencil" ? 200 : 100;
  if (options.study == "stencil") return run_stencil(options);
  if (options.study == "diffusion") return run_diffusion(options);
  if (options.study == "particles") return run_particles(options);
  return run_sparse(options.study, options);
}
