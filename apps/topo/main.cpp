// The command line of topo.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  topo::Options options;
  CLI::App app{"The memories of this machine and how fast bytes get from each to each"};
  apps::add_common(app, "topo", options,
                   {.json = "file for the machine, as MESHPOST_MACHINE takes it",
                    .refused = {{"--ranks", "links are measured by the host, without ranks"},
                                {"--check", "rates are measured, no results are compared"},
                                {"--progress", "all results are printed at the end"}}});
  app.add_option("--measure", options.measure,
                 "once: known rates, measured if there are none; again: measure; never: no rates")
      ->capture_default_str()
      ->check(CLI::IsMember({"once", "again", "never"}));
  return apps::run_app(app, argc, argv, options, "topo", "--devices",
                       [&] { return topo::run(options); });
}
