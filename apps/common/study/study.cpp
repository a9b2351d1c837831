#include "study.hpp"

#include <algorithm>
#include <cerrno>  // program_invocation_short_name
#include <cstdio>
#include <cstdlib>
#include <meshpost/copy/job_memory.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/gather.hpp"
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

WorldOptions world_of(StudyOptions const& options) {
  WorldOptions where;
  where.devices = options.devices;
  where.ranks = options.ranks;
  return where;
}

u64 least(World const& world, u64 mine) {
  if (world.processes() == 1) return mine;
  JobMemory job;
  for (auto const& text : gather(job, std::to_string(mine)))
    mine = std::min<u64>(mine, std::stoull(text));
  return mine;
}

bool in_all(World const& world, bool mine) { return least(world, mine ? 1 : 0) == 1; }

bool all_on_gpus(World const& world) {
  auto const is_gpu = [](auto const& device) { return device->kind() == "cuda"; };
  return in_all(world, std::ranges::all_of(world.devices(), is_gpu));
}

bool all_in_host_memory(World const& world) {
  return in_all(world, std::ranges::all_of(world.devices(), &Device::in_host_memory));
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
  // If one process alone fails here, it can't unwind: destructors wait for the others, which wait
  // for its messages. If it ends instead, the others get an error that names it.
  auto const alone = [&](auto const& work) {
    if (world.processes() == 1) {
      work();
      return;
    }
    try {
      work();
    } catch (std::exception const& error) {
      std::fflush(stdout);
      std::fprintf(stderr, "%s: process %u: %s\n", program_invocation_short_name, world.process(),
                   error.what());
      std::_Exit(1);
    }
  };
  if (options.against != "none") {
    exchange = make_exchange(options.against, world, study.memories());
    comparison.against = exchange->name();
    alone([&] {
      study.reset();
      exchange->prepare(study.steps(), [&](u32 step) { study.step(*exchange, step); });
    });
  }
  for (u32 repetition = 0; repetition <= options.repetitions; ++repetition) {
    alone([&] { study.reset(); });
    double const kernel = timed_kernel(study, {});
    look(study, comparison, job);
    double other = 0, communication = 0;
    if (exchange) {
      alone([&] {
        study.reset();
        other = exchange->play();
      });
      look(study, comparison, job);
      alone([&] { communication = exchange->communication(); });
    }
    if (repetition == 0) continue;  // it loads kernels and touches memory for the first time
    comparison.kernel.add(kernel);
    if (!exchange) continue;
    comparison.two_model.add(other);
    comparison.communication.add(communication);
  }
  if (!options.trace.empty()) {  // not counted: it takes longer
    alone([&] { study.reset(); });
    Launch launch;
    launch.trace = options.trace;
    timed_kernel(study, launch);
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
  std::printf("runs        of each version: %u; below, medians%s\n", options.repetitions,
              options.repetitions > 5 ? " and intervals of 95 %" : ", and the least and the most");
  print_row("one kernel", comparison.kernel);
  if (!comparison.against.empty()) {
    print_row("two models", comparison.two_model);
    print_row("  messages", comparison.communication);
    std::printf("ratio       one kernel is %.3g times as fast as two models (messages by %s)\n",
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

}  // namespace meshpost::apps
