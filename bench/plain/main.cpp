// The command line of the plain programs.
#include <CLI/CLI.hpp>

#include "options.hpp"

namespace {

using namespace meshpost;
using plain::Options;

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
    options.study = app.get_subcommands().front()->get_name();
    return plain::run(options);
  });
}
