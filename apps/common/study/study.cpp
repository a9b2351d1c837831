#include "study.hpp"

#include <algorithm>
#include <cstdio>
#include <meshpost/copy/job_memory.hpp>
#include <optional>
#include <span>

#include "common/files.hpp"
#include "kinds.hpp"

namespace meshpost::apps {
namespace {

// Compares the result of a run with that of the first one. The processes of `job` meet behind it:
// process 0 reads the others' memory, which they then set back.
void look(Study& study, Comparison& comparison, std::optional<JobMemory>& job) {
  auto const result = study.result();
  if (job) job->meet("result");
  if (comparison.result.empty()) comparison.result = result;
  else if (result != comparison.result) comparison.identical = false;
}

double timed_kernel(Study& study, Launch const& launch) {
  double const begin = now();
  study.run_kernel(launch);
  return now() - begin;
}

void print_row(char const* name, Samples const& samples) {
  std::printf("%-11s %.4g ms (%.4g to %.4g)\n", name, samples.median() * 1e3, samples.lower() * 1e3,
              samples.upper() * 1e3);
}

}  // namespace

void add_study(CLI::App& app, std::string const& name, StudyOptions& options,
               Meanings const& meanings) {
  add_common(app, name, options, meanings);
  app.add_option("--against", options.against,
                 "communication of the other version, which has a kernel a step: copies (of this "
                 "library), mpi, nccl, auto (the fastest that there is), or none")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "copies", "mpi", "nccl", "none"}));
  app.add_option("--repetitions", options.repetitions, "runs of each version")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100'000u));
  app.add_option("--output", options.output, "file for the result, as .npy");
  app.add_option("--trace", options.trace, "file for the timeline of the last run");
}

WorldOptions world_of(StudyOptions const& options) {
  WorldOptions where;
  where.devices = options.devices;
  where.ranks = options.ranks;
  return where;
}

u32 ranks_per_processor(World const& world) {
  if (world.devices().empty()) return 1;
  auto const whole = physical(world.devices().front());
  auto const parts = std::ranges::count_if(
      world.devices(), [&](auto const& device) { return physical(device) == whole; });
  u32 const processors = std::max(1u, whole->info().processors);
  u32 const ranks = world.ranks_per_device() * static_cast<u32>(parts);
  return (ranks + processors - 1) / processors;
}

u32 threads_of_rank(World const& world, u32 most) {
  constexpr u32 warp = 32;
  return std::max(warp, most / ranks_per_processor(world) / warp * warp);
}

Comparison compare(World& world, Study& study, StudyOptions const& options) {
  Comparison comparison;
  std::unique_ptr<Exchange> exchange;
  std::optional<JobMemory> job;
  if (world.processes() > 1) job.emplace();
  if (options.against != "none") {
    exchange = make_exchange(options.against, world, study.memories());
    comparison.against = exchange->name();
    study.reset();
    exchange->prepare(study.steps(), [&](u32 step) { study.step(*exchange, step); });
  }
  for (u32 repetition = 0; repetition <= options.repetitions; ++repetition) {
    Launch launch;
    if (repetition == options.repetitions) launch.trace = options.trace;
    study.reset();
    double const kernel = timed_kernel(study, launch);
    look(study, comparison, job);
    LoopTime other;
    if (exchange) {
      study.reset();
      other = exchange->play();
      look(study, comparison, job);
    }
    if (repetition == 0) continue;  // it loads kernels and touches memory for the first time
    comparison.kernel.add(kernel);
    if (!exchange) continue;
    comparison.two_model.add(other.seconds);
    comparison.communication.add(other.communication);
  }
  return comparison;
}

nlohmann::json report(World const& world, Comparison const& comparison,
                      StudyOptions const& options) {
  nlohmann::json devices = nlohmann::json::array();
  for (auto const& device : world.devices()) {
    devices.push_back(device->name() + " (" + device->info().model + ")");
    std::printf("device      %s\n", devices.back().get<std::string>().c_str());
  }
  if (world.processes() > 1)
    std::printf("processes   %u, with %u devices\n", world.processes(), world.device_count());
  std::printf("ranks       %u on each device\n", world.ranks_per_device());
  std::printf("runs        %u of each version; below, medians and intervals of 95 %%\n",
              options.repetitions);
  print_row("one kernel", comparison.kernel);
  if (!comparison.against.empty()) {
    print_row("two models", comparison.two_model);
    print_row("  messages", comparison.communication);
    std::printf("ratio       %.3g (two models, by %s, over one kernel)\n",
                comparison.two_model.median() / comparison.kernel.median(),
                comparison.against.c_str());
  }
  std::printf("results     %s\n", comparison.identical ? "equal to the bit" : "DIFFERENT");
  return {{"devices", devices},
          {"device_count", world.device_count()},
          {"processes", world.processes()},
          {"ranks_per_device", world.ranks_per_device()},
          {"against", comparison.against},
          {"kernel", json_of(comparison.kernel)},
          {"two_model", json_of(comparison.two_model)},
          {"communication", json_of(comparison.communication)},
          {"identical", comparison.identical}};
}

void write_figures(std::string const& file, nlohmann::json const& figures) {
  std::string const text = figures.dump(1) + "\n";
  write_file(file, std::as_bytes(std::span(text)));
}

}  // namespace meshpost::apps
