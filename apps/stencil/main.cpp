// The command line of stencil.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  stencil::Options options;
  CLI::App app{"Three dependent stencils, cut in rows over all devices, in two versions"};
  apps::add_study(app, "stencil", options, {.check = "compare the versions, bit for bit"});
  auto const number = [&](char const* name, u32& value, char const* what, u32 least) {
    app.add_option(name, value, what)->capture_default_str()->check(CLI::Range(least, 1u << 20));
  };
  number("--levels", options.levels, "levels", 1);
  number("--rows", options.rows, "rows of each device", 2);
  number("--columns", options.columns, "columns", 5);
  number("--iterations", options.iterations, "steps", 1);
  number("--groups", options.groups,
         "messages to a neighbour, each of some levels; 0: one a level if there are ranks enough; "
         "on CPU devices alone as few as give all ranks work",
         0);
  app.add_option("--threads", options.threads,
                 "threads on a multiprocessor of a GPU, shared by its ranks")
      ->capture_default_str()
      ->check(CLI::Range(32u, stencil::Options::most_threads));
  app.add_option("--seed", options.seed, "of the initial field")->capture_default_str();
  app.add_flag("--strong", options.strong, "--rows are those of all devices together");
  app.add_option("--precision", options.precision, "float or double")
      ->capture_default_str()
      ->check(CLI::IsMember({"float", "double"}));
  app.add_option("--scratch", options.scratch,
                 "keep each rank's fields in its scratch, shared memory of a GPU: on, off, or auto "
                 "(on GPUs if they fit; on CPU devices alone some rows)")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "on", "off"}));
  app.add_option("--initial", options.initial, "file for the initial field, as .npy");
  return apps::run_app(app, argc, argv, options, "stencil", "--rows",
                       [&] { return stencil::run(options); });
}
