// A ping-pong between two devices, and a halo exchange in three dimensions: each driven by the
// host, by streams, and by the ranks of one run.
#include <CLI/CLI.hpp>
#include <random>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  pingpong::Options options;
  options.seed = std::random_device{}();
  CLI::App app{"Ping-pong and halo exchange, by the host, by streams and by one kernel"};
  apps::add_common(app, "pingpong", options, {.check = "compare all that arrived, bit for bit"});
  auto const all_or_some = [&](char const* option, std::vector<std::string>& chosen,
                               char const* text, std::vector<std::string> const& names) {
    app.add_option(option, chosen, text)->delimiter(',')->check(CLI::IsMember(names));
  };
  app.add_option("--figure", options.figure,
                 "13: a ping-pong; 18: with a kernel of 5 us before each put; halo: a 3-D halo")
      ->capture_default_str()
      ->check(CLI::IsMember({"13", "18", "halo"}));
  all_or_some("--modes", options.modes, "only these: host,stream,kernel",
              {"host", "stream", "kernel"});
  app.add_option("--repetitions", options.repetitions, "number of timed runs; the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1000u));
  app.add_option("--seed", options.seed, "seed of the bytes, or of the field");
  all_or_some("--buffers", options.buffers, "13, 18: only these: device,host (pinned)",
              {"device", "host"});
  app.add_option("--size", options.sizes,
                 "13, 18: bytes of a message, such as 8,64KiB; default: 1 B to 4 MiB in 44 steps")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(u64{1}, u64{1} << 30));
  app.add_option("--kernel-us", options.kernel_us,
                 "13, 18: microseconds of a kernel before each put; 0: no kernel")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--trips", options.trips,
                 "13, 18: round trips of a run; default: 100 on GPUs, 20 on CPU devices")
      ->check(CLI::Range(1u, 100000u));
  app.add_option("--cubes", options.cubes,
                 "halo: points of a device's block along each axis; default: 16,32,64,128 on GPUs, "
                 "8,16,32 on CPU devices")
      ->delimiter(',')
      ->check(CLI::Range(2u, 512u));
  app.add_option("--steps", options.steps, "halo: steps of a run")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1u, 100000u));
  app.add_option("--blocks", options.blocks,
                 "halo: blocks along x, y and z, such as 2x2x1; default: close to a cube");
  app.add_option(
         "--tasks", options.tasks,
         "halo: X,Y,Z kernels of a step that pack, compute the interior and unpack; several "
         "with ;, for the second of --cubes")
      ->delimiter(';');
  app.add_option("--fields", options.fields,
                 "halo: folder for the first checked field, before and after, as float64");
  return apps::run_app(app, argc, argv, options, "pingpong", "--size or --cubes", [&] {
    return options.halo() ? pingpong::run_halo(options) : pingpong::run_exchange(options);
  });
}
