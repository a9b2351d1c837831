// Benchmarks of kernels. One iteration is one launch, and its time comes from the ranks' own
// clocks. In a job of several processes, all run only the benchmarks between processes.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <ranges>
#include <string_view>
#include <vector>

#include "worlds.hpp"

namespace bench {
namespace {

std::vector<std::shared_ptr<meshpost::Device>> const& devices() {
  static auto const all = meshpost::open_devices(meshpost::Config::from_environment().devices);
  return all;
}

// The first World of a process joins the job. It is destroyed before others are measured, because
// processes with several Worlds agree on each run.
struct Joined {
  meshpost::u32 process = 0, processes = 1;
  std::chrono::duration<double, std::micro> took{};
};

Joined const& joined() {
  static Joined const one = [] {
    auto const begin = std::chrono::steady_clock::now();
    meshpost::World const world({.devices = "cpu:1", .ranks = 1});
    return Joined{world.process(), world.processes(), std::chrono::steady_clock::now() - begin};
  }();
  return one;
}

}  // namespace

meshpost::u32 process() { return joined().process; }
meshpost::u32 processes() { return joined().processes; }

meshpost::u32 device_count() { return static_cast<meshpost::u32>(devices().size()); }
std::string kind() { return std::string(devices().front()->kind()); }

meshpost::Launch const& launch() {
  static meshpost::Launch const one;
  return one;
}

std::string first_devices(meshpost::u32 count) {
  bool const split = devices().front()->whole() != nullptr;
  if (count > device_count() || (split && count != device_count())) return {};
  if (split) return meshpost::Config::from_environment().devices;
  if (kind() == "cpu") return "cpu:" + std::to_string(count);
  std::string names = "cuda";
  for (meshpost::u32 d = 0; d < count; ++d)
    names += (d == 0 ? ":" : ",") + std::to_string(devices()[d]->index());
  return names;
}

std::shared_ptr<meshpost::World> world(meshpost::u32 count, meshpost::u32 ranks) {
  static std::shared_ptr<meshpost::World> kept;
  static meshpost::u32 kept_count = 0, kept_ranks = 0;
  auto const names = first_devices(count);
  if (names.empty()) return nullptr;
  if (kept && kept_count == count && kept_ranks == ranks) return kept;
  kept.reset();
  meshpost::WorldOptions options;
  options.ranks = ranks;
  options.devices = names;
  kept = std::make_shared<meshpost::World>(options);
  kept_count = count, kept_ranks = ranks;
  return kept;
}

}  // namespace bench

namespace {

/// Reports nothing: process 0 reports.
class Silent : public benchmark::BenchmarkReporter {
  bool ReportContext(Context const&) override { return true; }
  void ReportRuns(std::vector<Run> const&) override {}
};

int run_one_of_many(std::vector<char*> arguments) {
  if (bench::process() != 0)
    std::erase_if(arguments, [](char const* one) {
      return std::string_view(one).starts_with("--benchmark_out");
    });
  int count = static_cast<int>(arguments.size());
  benchmark::ClearRegisteredBenchmarks();
  bench::add_between_processes();
  bench::add_plans();
#if defined(MESHPOST_BENCH_ENGINES)
  bench::add_engine_between_processes();
#endif
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  Silent silent;
  if (bench::process() == 0) benchmark::RunSpecifiedBenchmarks();
  else benchmark::RunSpecifiedBenchmarks(&silent);
  return 0;
}

/// Takes `--name=8,64` out of the arguments and returns its numbers; none if it was not given.
std::vector<std::int64_t> take_sizes(std::vector<char*>& arguments, std::string_view option) {
  std::vector<std::int64_t> sizes;
  std::erase_if(arguments, [&](std::string_view one) {
    if (!one.starts_with(option)) return false;
    for (auto const size : std::views::split(one.substr(option.size()), ','))
      sizes.push_back(std::stoll(std::string(size.begin(), size.end())));
    return true;
  });
  return sizes;
}

}  // namespace

int main(int argc, char** argv) try {
  benchmark::AddCustomContext("meshpost", meshpost::version);
  benchmark::AddCustomContext("processes", std::to_string(bench::processes()));
  benchmark::AddCustomContext("first_world_us", std::to_string(bench::joined().took.count()));
  if (bench::processes() > 1) return run_one_of_many({argv, argv + argc});
  for (auto const& device : meshpost::open_devices(meshpost::Config::from_environment().devices))
    benchmark::AddCustomContext(device->name(), device->info().model);
  std::vector<char*> arguments(argv, argv + argc);
  auto const pairs = take_sizes(arguments, "--pairs=");
  auto const groups = take_sizes(arguments, "--groups=");
  bool const launches = !take_sizes(arguments, "--launches=").empty();
  if (pairs.empty() && groups.empty() && !launches) {
    bench::add_between_processes();
    bench::add_plans();
  } else {  // only the benchmarks that tools/compare.py asks for
    benchmark::ClearRegisteredBenchmarks();
    if (!pairs.empty()) bench::add_pairs(pairs);
    if (!pairs.empty()) bench::add_streams(pairs);
    if (!groups.empty()) bench::add_groups(groups);
    if (launches) bench::add_launches();  // of no size
  }
  argc = static_cast<int>(arguments.size());
  benchmark::Initialize(&argc, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(argc, arguments.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
} catch (meshpost::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
