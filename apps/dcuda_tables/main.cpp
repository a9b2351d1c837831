// The command line of dcuda_tables.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  dcuda_tables::Options options;
  CLI::App app{"Latency and bandwidth of notified access: on a device, a node, or between nodes"};
  apps::add_common(app, "dcuda_tables", options, {.check = "compare all that arrived"});
  app.add_option("--repetitions", options.repetitions, "timed runs of each measurement")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10'000u));
  app.add_option("--rounds", options.rounds,
                 "messages of a run; by default 10000 on GPUs, 200 on CPU devices. Long messages "
                 "take fewer")
      ->check(CLI::Range(10u, 10'000'000u));
  app.add_option("--sizes", options.sizes, "bytes of messages for the bandwidth: 4,64KiB,1MiB")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(u64{1}, u64{1} << 30));
  app.add_flag("--mpi", options.mpi, "started by mpirun: each process is a node, MPI the network");
  app.add_flag("--engines", options.engines, "only print the network engines of this program");
  return apps::run_app(app, argc, argv, options, "dcuda_tables", "--ranks or --sizes",
                       [&] { return dcuda_tables::run(options); });
}
