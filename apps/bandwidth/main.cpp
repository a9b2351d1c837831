// The command line of bandwidth.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  bandwidth::Options options;
  CLI::App app{"Bandwidth between all memories of this machine, in every variant"};
  apps::add_common(app, "bandwidth", options,
                   {.check = "compare what arrived, bit for bit",
                    .refused = {{"--ranks", "copies are the host's, without ranks"}}});
  app.add_option("--size", options.sizes, "bytes of a copy, such as 64MiB; several with commas")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(u64{1}, u64{1} << 36));
  app.add_option("--places", options.places, "only these, such as pinned:0,cuda:1")->delimiter(',');
  app.add_option("--variants", options.variants, "only these, such as copy,driver")->delimiter(',');
  app.add_option("--repetitions", options.repetitions, "number of timed copies; the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10000u));
  app.add_option("--seed", options.seed, "seed of the copied bytes");
  app.add_flag("--shared-memory,!--no-shared-memory", options.shared_memory,
               "let several processes share memory (default), or not");
  auto* const node =
      app.add_option("--cpu-node", options.cpu_nodes,
                     "run on the cores of this NUMA node; several: of each process in turn")
          ->delimiter(',');
  auto* const predict = app.add_flag("--predict", options.predict,
                                     "also what the variant copy should take, and the error");
  auto* const what_if = app.add_option("--what-if", options.what_if,
                                       "copy nothing: predict for an edited machine.json of topo");
  app.add_option("--against", options.against, "the machine.json to compare that of --what-if with")
      ->needs(what_if);
  what_if->excludes(predict)
      ->excludes(node)
      ->excludes("--variants")
      ->excludes("--repetitions")
      ->excludes("--seed");
  return apps::run_app(app, argc, argv, options, "bandwidth", "--size",
                       [&] { return bandwidth::run(options); });
}
