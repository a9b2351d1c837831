// Bandwidth of every ordered pair of memories in every variant: figure 5.2 of the GPUDirect thesis.
#include <meshpost/copy/copy.hpp>

#include <cstdio>
#include <cstdlib>

#include "across.hpp"
#include "chosen.hpp"
#include "options.hpp"
#include "placement.hpp"
#include "predict.hpp"
#include "report.hpp"
#include "what_if.hpp"

namespace {

using namespace meshpost;
using bandwidth::chosen;
using bandwidth::Options;
using bandwidth::Plan;
using bandwidth::Result;

// If both are measured: copies without peer access against the same with it.
void add_peer_comparison(Plan& plan) {
  auto const measured = [&](char const* name) {
    return std::ranges::find(plan.variants, name, &bandwidth::Variant::name) != plan.variants.end();
  };
  for (auto const* const with : {"driver", "memcpy"})
    if (measured(with) && measured("no_peers"))
      plan.comparisons.push_back(
          {"time without peer access above that with it", "no_peers", with, true});
}

Plan make_plan(Options const& options) {
  Plan plan;
  plan.devices = physical_devices(open_devices(options.devices));  // whose memories are the places
  use_devices_for_copies(plan.devices);
  std::vector<Place> places;
  for (auto const& info : discover(plan.devices).places) places.push_back(info.place);
  plan.places =
      chosen(places, options.places, "--places", "this machine", [](auto& p) { return p.name(); });
  plan.variants = chosen(bandwidth::all_variants(plan.devices), options.variants, "--variants",
                         "this machine", [](auto& variant) { return variant.name; });
  for (u64 const size : options.sizes) plan.sizes.push_back(Bytes{size});
  plan.repetitions = options.repetitions;
  plan.check = options.check;
  plan.seed = options.seed;
  plan.fingerprint = fingerprint(plan.devices);
  add_peer_comparison(plan);
  return plan;
}

// The model beside the measurement. Copies have calibrated the machine, if it was not before.
void add_prediction(Plan& plan, std::vector<Result>& results) {
  plan.variants.push_back({"model", "meshpost::copy, predicted from the measured links", {}});
  plan.comparisons.push_back({"error of the model's time", "model", "copy", false});
  auto const& machine = this_machine(plan.devices);
  for (auto& one : bandwidth::predict(machine, plan.places, plan.sizes, "model"))
    results.push_back(std::move(one));
}

void refuse_without_copy(Plan const& plan) {
  std::vector<std::string> names;
  for (auto const& one : plan.variants) names.push_back(one.name);
  if (std::ranges::find(names, "copy") == names.end())
    throw Error(Kind::bad_argument, "--predict",
                "the model is of the variant copy, and --variants has " + bandwidth::list(names),
                "add copy to --variants");
}

void show_progress(unsigned done, unsigned all) {
  std::fprintf(stderr, "\r[%-40.*s] %u of %u pairs", static_cast<int>(40 * done / all),
               "========================================", done, all);
  if (done == all) std::fprintf(stderr, "\n");
}

int report(Options const& options, Plan const& plan, std::vector<Result> const& results) {
  bandwidth::print_all(plan, results);
  u64 const failed = bandwidth::print_problems(results);
  std::printf("\ncontents    %s\n", failed          ? "WRONG"
                                    : options.check ? "as they should be"
                                                    : "not checked");
  if (!options.json.empty()) bandwidth::write_json(options.json, plan, results);
  return failed ? 1 : 0;
}

int run_across(Options const& options, JobMemory& job, std::vector<u32> const& nodes) {
  for (auto const& [option, given] :
       {std::pair{"--predict", options.predict}, std::pair{"--what-if", !options.what_if.empty()}})
    if (given)
      throw Error(Kind::bad_argument, option,
                  "the model has no links between processes, and this job has " +
                      std::to_string(job.processes()) + " processes",
                  "start one process, or leave the option out");
  auto plan =
      bandwidth::plan_across(job, options.devices, options.places, options.variants, options.seed);
  for (u64 const size : options.sizes) plan.sizes.push_back(Bytes{size});
  plan.repetitions = options.repetitions;
  plan.check = options.check;
  plan.cpu_nodes = nodes;
  auto const results = bandwidth::measure_across(job, plan);
  return job.process() == 0 ? report(options, plan, results) : 0;
}

// Binds this process, and returns the nodes of all processes; empty if none is bound.
std::vector<u32> place(Options const& options, JobMemory const& job) {
  if (options.cpu_nodes.empty()) return {};
  std::vector<u32> nodes;
  std::string text;
  for (u32 process = 0; process < job.processes(); ++process) {
    nodes.push_back(bandwidth::node_of_process(options.cpu_nodes, process, job.processes()));
    text += (text.empty() ? "process " : ", process ") + std::to_string(process) + " on node " +
            std::to_string(nodes.back());
  }
  bandwidth::run_on_node(nodes[job.process()]);
  if (job.process() == 0) std::printf("placement   %s\n", text.c_str());
  return nodes;
}

}  // namespace

int bandwidth::run(Options const& options) {
  if (!options.shared_memory)  // before the job's processes meet
    if (char const* const process = std::getenv("MESHPOST_PROCESS"))
      setenv("MESHPOST_NODE", process, 1);
  JobMemory job;
  auto const nodes = place(options, job);  // before devices count the cores that they may use
  if (job.processes() > 1) return run_across(options, job, nodes);
  if (!options.what_if.empty()) return bandwidth::run_what_if(options);
  auto plan = make_plan(options);
  plan.cpu_nodes = nodes;
  if (options.predict) refuse_without_copy(plan);
  bool const progress = options.shows_progress();
  for (auto const& device : plan.devices)
    std::printf("device      %s (%s)\n", device->name().c_str(), device->info().model.c_str());
  std::fflush(stdout);
  auto results = bandwidth::measure(plan, [&](unsigned done, unsigned all) {
    if (progress) show_progress(done, all);
  });
  if (options.predict) add_prediction(plan, results);
  return report(options, plan, results);
}
