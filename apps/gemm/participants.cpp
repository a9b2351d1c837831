#include "participants.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "common/gather.hpp"
#include "distances.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/copy/copy.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost::gemm {
namespace {

// The same in all processes of a running system, in no other one: containers may share names.
std::string host_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (file >> id) return id;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string memory_id(Device const& device, std::string const& host) {
  return host + (device.in_host_memory() ? "" : " " + device.info().uuid);
}

Error too_large(Plan const& plan, MemoryUse const& use, Participants const& all) {
  auto const& p = plan.problem;
  auto const bytes = [](u64 count) { return std::to_string(count); };
  return {Kind::out_of_memory,
          "multiply with m, n, k of " + bytes(p.m) + ", " + bytes(p.n) + ", " + bytes(p.k),
          "the memory of " + all.names[use.device] + " needs " + bytes(use.needed) +
              " bytes, but " + bytes(use.free) + " bytes are free, of which " + bytes(use.usable) +
              " may be used",
          "use a smaller --size (max finds the largest), or more devices"};
}

}  // namespace

Participants open_all(Options& options, JobMemory& job) {
  Participants all;
  bool const alone = job.processes() == 1;
  auto const own =
      open_devices(alone ? options.devices : devices_in_job(options.devices, job.process()));
  if (!alone) {
    all.spread.job = &job;
    options.seed = std::stoull(gather(job, std::to_string(options.seed)).front());
  }
  use_devices_for_copies(own);
  auto const kind = own.front()->kind();
  if (options.peer && own.size() > 1) backend(kind).connect(own);

  auto const host = host_id();
  nlohmann::json mine = {{"kind", kind}, {"devices", nlohmann::json::array()}};
  if (!alone) meet(job);  // all have opened theirs, which takes memory
  for (auto const& device : own)
    mine["devices"].push_back({{"name", device->name() + " (" + device->info().model + ")"},
                               {"memory", memory_id(*device, host)},
                               {"free", device->free_memory().value},
                               {"host", host},
                               {"bus", device->info().bus}});
  auto const texts = alone ? std::vector{mine.dump()} : gather(job, mine.dump());
  std::vector<Site> sites;
  for (u32 process = 0; process < texts.size(); ++process) {
    auto const theirs = nlohmann::json::parse(texts[process]);
    if (theirs["kind"] != mine["kind"])
      throw Error(Kind::bad_argument, "spread the matrices over the devices",
                  "processes have devices of different kinds", "give all the same --devices");
    for (u32 i = 0; i < theirs["devices"].size(); ++i) {
      auto const& device = theirs["devices"][i];
      auto const name = device["name"].get<std::string>();
      u64 const free = device["free"], spare = std::min(free, spare_memory);
      all.devices.push_back(process == job.process() ? own[i] : nullptr);
      all.names.push_back(alone ? name : "process " + std::to_string(process) + "'s " + name);
      all.memories.push_back(
          {device["memory"], free, options.memory != 0 ? options.memory : free - spare});
      sites.push_back({device["host"], device["bus"], device["memory"]});
      if (!alone) all.spread.owners.push_back(process);
    }
  }
  for (auto const& site : sites)
    all.spread.one_clock = all.spread.one_clock && site.host == sites.front().host;
  all.distances = all_distances(all, sites, options.peer);
  return all;
}

Device& own_device(Devices const& devices) {
  return **std::ranges::find_if(devices, [](auto const& device) { return device != nullptr; });
}

MemoryUse memory_use(Plan const& plan, blas::Type type, std::vector<DeviceMemory> const& memories,
                     u64 kept) {
  std::map<std::string, MemoryUse> uses;
  for (u32 d = 0; d < memories.size(); ++d) {
    auto const& memory = memories[d];
    auto [use, added] = uses.try_emplace(memory.id, MemoryUse{d, 0, memory.usable, memory.free});
    use->second.usable = std::min(use->second.usable, memory.usable);
    use->second.free = std::min(use->second.free, memory.free);
    use->second.needed +=
        (block_numbers(plan.problem, d) + buffer_numbers(plan, d)) * blas::size_of(type) +
        (d == 0 ? kept : 0);
  }
  MemoryUse fullest{0, 0, ~u64{0}, ~u64{0}};
  auto const left = [](MemoryUse const& use) { return static_cast<i64>(use.usable - use.needed); };
  bool first = true;
  for (auto const& [id, use] : uses) {
    if (first || left(use) < left(fullest)) fullest = use;
    first = false;
  }
  return fullest;
}

PlanOptions plan_options(Problem const& problem, Options const& options, Participants const& all) {
  PlanOptions plan;
  plan.panel = options.panel != 0 ? options.panel : default_panel(problem.k);
  plan.slots = options.slots;
  plan.order = options.order;
  plan.distances = all.distances;
  return plan;
}

u64 largest_size(Grid grid, Options const& options, Participants const& all) {
  auto const plan = [&](u64 n) {
    Problem const problem{n, n, n, grid};
    return make_plan(problem, plan_options(problem, options, all));
  };
  auto const fits = [&](u64 n) { return memory_use(plan(n), options.type, all.memories).fits(); };
  u64 least = std::max(grid.rows, grid.columns), most = least;
  require_memory(plan(least), options.type, all);
  while (fits(2 * most)) most *= 2;
  least = most, most *= 2;  // least fits, most doesn't
  while (most - least > 1) {
    u64 const middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

void require_memory(Plan const& plan, blas::Type type, Participants const& all) {
  auto const use = memory_use(plan, type, all.memories);
  if (!use.fits()) throw too_large(plan, use, all);
}

}  // namespace meshpost::gemm
