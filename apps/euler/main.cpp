// The command line of euler.
#include <CLI/CLI.hpp>

#include "common/grid_text.hpp"
#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  euler::Options options;
  CLI::App app{
      "The 3-D Rayleigh-Taylor instability by the compressible Euler equations, spread "
      "over all devices"};
  apps::add_common(app, "euler", options,
                   {.check = "compare with one device, bit for bit, and test the symmetry"});
  apps::add_grid(app, options.grid, "cells along x, y and z (24x24x48)");
  auto* const steps = app.add_option("--steps", options.steps, "steps")
                          ->capture_default_str()
                          ->check(CLI::Range(u64{0}, euler::most_steps));
  app.add_option("--time", options.time, "time to simulate, in place of --steps")->excludes(steps);
  auto* const dt = app.add_option("--dt", options.dt, "time of a step");
  app.add_option("--cfl", options.cfl, "Courant number at the beginning, in place of --dt (0.8)")
      ->excludes(dt);
  app.add_option("--amplitude", options.amplitude, "largest speed of the perturbation (0.01)");
  app.add_option("--execution", options.execution,
                 "one-kernel for all steps, or kernel-a-step, with the exchange by streams")
      ->capture_default_str()
      ->check(CLI::IsMember({"one-kernel", "kernel-a-step"}));
  app.add_option("--exchange", options.exchange,
                 "halos of other devices: direct, or through-host, as if devices did not reach "
                 "each other")
      ->capture_default_str()
      ->check(CLI::IsMember({"direct", "through-host"}));
  app.add_option("--shares", options.shares,
                 "of the cells, by device, such as 1,2.5,1; or measured: by speed");
  app.add_option("--threads", options.threads,
                 "of a rank of a GPU, or of a block with kernel-a-step; 0: the default")
      ->check(CLI::Range(0u, 1024u));
  app.add_option("--check-every", options.check_every,
                 "steps from one search for values that are no number to the next; 0: none")
      ->capture_default_str();
  auto* const frames =
      app.add_option("--frames", options.frames, "frames behind the first, at most")
          ->capture_default_str()
          ->check(CLI::Range(u64{1}, u64{1} << 20));
  app.add_option("--every", options.every, "steps from one frame to the next, in place of --frames")
      ->excludes(frames)
      ->check(CLI::Range(u64{1}, euler::most_steps));
  app.add_option(
         "--repetitions", options.repetitions,
         "more runs, which are timed, and as many that measure the exchange; 0: the first one "
         "is timed")
      ->check(CLI::Range(0u, 1000u));
  app.add_option("--restart", options.restart, "file of --save to begin with");
  app.add_option("--save", options.save,
                 "file for a restart, written with each frame but the first");
  app.add_option("--slices", options.slices,
                 "file for the frames' densities in the middle of y, as .npy");
  app.add_option("--initial", options.initial, "file for the first values, as .npy");
  app.add_option("--output", options.output, "file for the last values, as .npy");
  return apps::run_app(app, argc, argv, options, "euler", "--grid",
                       [&] { return euler::run(options); });
}
