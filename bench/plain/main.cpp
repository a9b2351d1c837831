// Runs one case study as a plain program of one device. Its options are those of the application,
// so both can be given the same.
#include <chrono>
#include <cstdio>
#include <utility>

#include "common/files.hpp"
#include "common/sparse/problem.hpp"
#include "common/study/study.hpp"
#include "plain.hpp"
#include "stencil/initial.hpp"

namespace {

using namespace meshpost;
using plain::Version;

struct Options : apps::Common {
  std::string on = "cpu", output, input = "random:26x320x128:1";
  u32 repetitions = 20, steps = 0, levels = 26, rows = 320, columns = 128, seed = 1;
  particles::Options particles;
  apps::sparse::MatrixOptions matrix;
};

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

/// The options that all studies have. `steps` is the application's name for their number.
CLI::App* add_study(CLI::App& app, Options& options, char const* name, char const* steps,
                    u32 count) {
  auto* const study = app.add_subcommand(name, "as apps/" + std::string(name));
  study->option_defaults()->take_last();
  study->add_option("--on", options.on, "cpu: OpenMP; cuda: CUDA, on the first GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  study->add_option("--repetitions", options.repetitions, "runs, after one that does not count")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100'000u));
  study->add_option("--output", options.output, "file for the result, as .npy");
  study->add_option("--json", options.json, "file for the figures");
  // All steps are one CUDA graph.
  study->add_option(steps, options.steps, "steps, " + std::to_string(count) + " unless given")
      ->check(CLI::Range(1u, 20'000u));
  return study;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"A case study as a plain program of one device: OpenMP loops, or CUDA kernels"};
  app.require_subcommand(1);
  auto* const stencil = add_study(app, options, "stencil", "--iterations", 200);
  stencil->add_option("--levels", options.levels, "levels")->check(CLI::Range(1u, 1u << 20));
  stencil->add_option("--rows", options.rows, "rows")->check(CLI::Range(2u, 1u << 20));
  stencil->add_option("--columns", options.columns, "columns")->check(CLI::Range(5u, 1u << 20));
  stencil->add_option("--seed", options.seed, "of the initial field");
  auto* const diffusion = add_study(app, options, "diffusion", "--iterations", 100);
  diffusion
      ->add_option("--input", options.input, "field: FILE.npy or random:LEVELSxROWSxCOLUMNS:SEED")
      ->capture_default_str();
  auto* const particles = add_study(app, options, "particles", "--steps", 100);
  particles->add_option("--particles", options.particles.particles, "how many");
  particles->add_option("--width", options.particles.width, "of the domain");
  particles->add_option("--length", options.particles.length, "of the domain");
  particles->add_option("--dt", options.particles.dt, "time of a step");
  particles->add_option("--capacity", options.particles.capacity, "particles that a segment holds");
  auto* const spmv = add_study(app, options, "spmv", "--products", 100);
  apps::sparse::add_matrix_options(*spmv, options.matrix);
  auto* const power = add_study(app, options, "power_iteration", "--iterations", 100);
  apps::sparse::add_matrix_options(*power, options.matrix);
  return apps::run_app(app, argc, argv, options, "plain", "sizes", [&] {
    if (options.steps == 0) options.steps = stencil->parsed() ? 200 : 100;
    if (stencil->parsed()) return run_stencil(options);
    if (diffusion->parsed()) return run_diffusion(options);
    if (particles->parsed()) return run_particles(options);
    return run_sparse(spmv->parsed() ? "spmv" : "power_iteration", options);
  });
}
