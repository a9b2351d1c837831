// The command line of diffusion.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  diffusion::Options options;
  CLI::App app{"COSMO horizontal diffusion of a field, spread over all ranks of all devices"};
  apps::add_common(app, "diffusion", options, {.check = "compare with one rank, bit for bit"});
  app.add_option("--input", options.input,
                 "field: FILE.npy (float64) or random:LEVELSxROWSxCOLUMNS:SEED")
      ->required();
  app.add_option("--output", options.output, "file for the result, as .npy");
  app.add_option("--iterations", options.iterations, "steps")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--precision", options.precision, "float or double")
      ->capture_default_str()
      ->check(CLI::IsMember({"float", "double"}));
  app.add_option(
         "--scheme", options.scheme,
         "sign of the Laplacian: gridtools (4u - neighbours) or cosmo (the other, which smooths)")
      ->capture_default_str()
      ->check(CLI::IsMember({"gridtools", "cosmo"}));
  app.add_option("--trace", options.trace, "file for the timeline, which Perfetto loads");
  return apps::run_app(app, argc, argv, options, "diffusion", "--input",
                       [&] { return diffusion::run(options); });
}
