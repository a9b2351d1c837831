#include "what_if.hpp"

#include <cstdio>

#include "chosen.hpp"
#include "predict.hpp"
#include "report.hpp"

namespace bandwidth {

using namespace meshpost;

namespace {

std::optional<Machine> base_machine(Options const& options, Machine const& edited) {
  if (!options.against.empty()) return read_machine("--against", options.against);
  auto const devices = physical_devices(open_devices(options.devices));
  if (fingerprint(devices) == edited.fingerprint) return this_machine(devices);
  return std::nullopt;
}

}  // namespace

int run_what_if(Options const& options) {
  auto const edited = read_machine("--what-if", options.what_if);
  auto const base = base_machine(options, edited);
  std::vector<Place> places;
  for (auto const& info : edited.places) places.push_back(info.place);
  Plan plan;
  plan.repetitions = 0;
  plan.fingerprint = edited.fingerprint;
  for (u64 const size : options.sizes) plan.sizes.push_back(Bytes{size});
  plan.places = chosen(places, options.places, "--places", options.what_if,
                       [](auto& place) { return place.name(); });
  plan.variants.push_back({"what_if", "meshpost::copy, predicted for " + options.what_if, {}});
  auto results = predict(edited, plan.places, plan.sizes, "what_if");
  if (base) {
    auto const name = options.against.empty() ? "this machine" : options.against;
    plan.variants.push_back({"model", "the same for " + name, {}});
    plan.comparisons.push_back(
        {"time of what_if above that for " + name, "what_if", "model", false});
    for (auto& one : predict(*base, plan.places, plan.sizes, "model"))
      results.push_back(std::move(one));
  } else {
    std::printf("%s is not of this machine with these devices; --against FILE compares it\n",
                options.what_if.c_str());
  }
  print_all(plan, results);
  if (!options.json.empty()) write_json(options.json, plan, results);
  return 0;
}

}  // namespace bandwidth
