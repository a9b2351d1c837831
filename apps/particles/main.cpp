// The command line of particles.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  particles::Options options;
  CLI::App app{
      "Particles that repel their neighbours, over all devices: one kernel for all steps, "
      "beside two kernels a step and communication by the host"};
  apps::add_study(app, "particles", options,
                  {.check = "compare with one device and other ranks, bit for bit"});
  app.add_option("--width", options.width, "of the domain")->capture_default_str();
  app.add_option("--length", options.length, "of the domain, for each device")
      ->capture_default_str();
  app.add_option("--particles", options.particles, "for each device")->capture_default_str();
  app.add_option("--steps", options.steps, "of time")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100'000'000u));
  app.add_option("--cutoff", options.cutoff, "distance from which particles feel nothing")
      ->capture_default_str();
  app.add_option("--dt", options.dt, "time of a step")->capture_default_str();
  app.add_option("--strength", options.strength, "largest force between two particles")
      ->capture_default_str();
  app.add_option("--speed", options.speed, "largest velocity at the beginning, along x and y")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the random particles")->capture_default_str();
  app.add_option("--capacity", options.capacity,
                 "particles that a segment holds, a multiple of 32; 0: 6 standard deviations above "
                 "the mean")
      ->capture_default_str();
  app.add_option("--precision", options.precision, "float or double")
      ->capture_default_str()
      ->check(CLI::IsMember({"float", "double"}));
  app.add_option("--initial", options.initial, "file for the particles at the beginning, as .npy");
  app.add_option("--frames", options.frames, "file for the particles every --every steps, as .npy");
  app.add_option("--every", options.every, "steps from frame to frame; 0: a twentieth of all")
      ->capture_default_str();
  return apps::run_app(app, argc, argv, options, "particles", "--particles",
                       [&] { return particles::run(options); });
}
