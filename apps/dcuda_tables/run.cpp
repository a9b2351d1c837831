// The thesis's figures of dCUDA for this machine: latencies and bandwidth between two ranks of one
// device, of one node or of two. One job measures one of these; the front starts all.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/study/study.hpp"
#include "measure.hpp"
#include "own_mpi.hpp"

namespace {

using namespace meshpost;
using namespace dcuda_tables;
using nlohmann::json;

// The device of this process: a GPU of its own, or a CPU device.
std::string own_device(u32 process) {
  auto const all = open_devices("");
  if (all.front()->kind() != "cuda") return "cpu:1";
  if (process >= all.size())
    throw Error(Kind::bad_argument, "dcuda_tables",
                "there is no GPU for process " + std::to_string(process) + "; there are " +
                    std::to_string(all.size()),
                "name devices by --devices, such as cpu:1");
  return all[process]->name();
}

json json_of(Timed const& timed) {
  return {{"bytes", timed.bytes},
          {"pairs", timed.pairs},
          {"rounds", timed.rounds},
          {"seconds", apps::json_of(timed.seconds)}};
}

json json_of(std::vector<Timed> const& all) {
  json array = json::array();
  for (auto const& timed : all) array.push_back(json_of(timed));
  return array;
}

void print(char const* name, Timed const& timed) {
  std::printf("%-11s %.4g us (%.4g to %.4g), %llu bytes, %u pairs\n", name,
              1e6 * timed.seconds.median(), 1e6 * timed.seconds.lower(),
              1e6 * timed.seconds.upper(), static_cast<unsigned long long>(timed.bytes),
              timed.pairs);
}

int run_job(Options const& options) {
  auto where = WorldOptions{};
  where.devices = options.devices;
  where.ranks = options.ranks;
  char const* const number = std::getenv("MESHPOST_PROCESS");
  u32 process = number ? static_cast<u32>(std::atoi(number)) : 0;
  if (options.mpi) use_mpi(where, process);
  if (where.devices.empty()) where.devices = own_device(process);
  World world(where);
  auto const measured = measure(world, options);
  if (measured.wrong > 0)
    std::printf("messages    WRONG: %llu bytes of process %u are not as sent\n",
                static_cast<unsigned long long>(measured.wrong), world.process());
  else if (options.check) std::printf("messages    as sent, process %u\n", world.process());
  int const status = measured.wrong > 0 ? 1 : 0;
  if (world.process() != 0) return status;

  auto const& device = *world.devices().front();
  auto const name = device.name() + " (" + device.info().model + ")";
  std::printf("device      %s, %u ranks\n", name.c_str(), world.ranks_per_device());
  print("notify", measured.notify);
  print("access", measured.access);
  for (auto const& timed : measured.bandwidth) print("put and ack", timed);
  for (auto const& timed : measured.host) print("host trip", timed);
  if (!options.json.empty())
    apps::write_figures(options.json, {{"device", name},
                                       {"ranks_per_device", world.ranks_per_device()},
                                       {"processes", world.processes()},
                                       {"checked", options.check},
                                       {"right", status == 0},
                                       {"notify", json_of(measured.notify)},
                                       {"access", json_of(measured.access)},
                                       {"bandwidth", json_of(measured.bandwidth)},
                                       {"host", json_of(measured.host)}});
  return status;
}

}  // namespace

int dcuda_tables::run(Options const& options) {
  if (!options.engines) return run_job(options);
  if (DCUDA_TABLES_OFI) std::puts("ofi");
  if (has_mpi()) std::puts("mpi");
  return 0;
}
