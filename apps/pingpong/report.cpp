#include "report.hpp"

#include <cstdio>

namespace pingpong {

using namespace meshpost;

nlohmann::json facts_of(Options const& options, World const& world) {
  nlohmann::json facts = {{"figure", options.figure},
                          {"devices", nlohmann::json::array()},
                          {"ranks_per_device", world.ranks_per_device()},
                          {"repetitions", options.repetitions},
                          {"seed", options.seed},
                          {"checked", options.check},
                          {"results", nlohmann::json::array()}};
  for (auto const& device : world.devices()) {
    auto const text = device->name() + " (" + device->info().model + ")";
    std::printf("device      %s\n", text.c_str());
    facts["devices"].push_back(text);
  }
  std::fflush(stdout);
  return facts;
}

nlohmann::json json_of(Times const& times) {
  return {{"seconds", times.median},       {"least_seconds", times.least},
          {"lower_quartile", times.lower}, {"upper_quartile", times.upper},
          {"cpu_seconds", times.cpu},      {"queued_seconds", times.queued}};
}

void show_progress(u32 done, u32 all) {
  std::fprintf(stderr, "\r[%-40.*s] %u of %u", static_cast<int>(40 * done / all),
               "========================================", done, all);
  if (done == all) std::fprintf(stderr, "\n");
}

std::string size_name(u64 bytes) {
  char const* unit = "B";
  for (char const* const larger : {"KiB", "MiB"})
    if (bytes >= 1024 && bytes % 1024 == 0) bytes /= 1024, unit = larger;
  return std::to_string(bytes) + " " + unit;
}

}  // namespace pingpong
