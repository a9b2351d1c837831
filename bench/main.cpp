// Benchmarks of what kernels do. Figures of a run come from the ranks' own clocks: one iteration is
// one launch.
#include <benchmark/benchmark.h>

#include <cstdio>

#include "worlds.hpp"

namespace bench {
namespace {

std::vector<std::shared_ptr<meshpost::Device>> const& devices() {
  static auto const all = meshpost::open_devices(meshpost::Config::from_environment().devices);
  return all;
}

}  // namespace

meshpost::u32 device_count() { return static_cast<meshpost::u32>(devices().size()); }
std::string kind() { return std::string(devices().front()->kind()); }

meshpost::Launch const& launch() {
  static meshpost::Launch const one;
  return one;
}

std::shared_ptr<meshpost::World> world(meshpost::u32 count, meshpost::u32 ranks) {
  static std::shared_ptr<meshpost::World> kept;
  static meshpost::u32 kept_count = 0, kept_ranks = 0;
  if (count > device_count()) return nullptr;
  if (kept && kept_count == count && kept_ranks == ranks) return kept;
  kept.reset();
  meshpost::WorldOptions options;
  options.ranks = ranks;
  options.devices = kind() == "cpu" ? "cpu:" + std::to_string(count) : "cuda";
  if (kind() != "cpu")
    for (meshpost::u32 d = 0; d < count; ++d)
      options.devices += (d == 0 ? ":" : ",") + std::to_string(devices()[d]->index());
  kept = std::make_shared<meshpost::World>(options);
  kept_count = count, kept_ranks = ranks;
  return kept;
}

}  // namespace bench

int main(int argc, char** argv) try {
  for (auto const& device : meshpost::open_devices(meshpost::Config::from_environment().devices))
    benchmark::AddCustomContext(device->name(), device->info().model);
  benchmark::AddCustomContext("meshpost", meshpost::version);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
} catch (meshpost::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
