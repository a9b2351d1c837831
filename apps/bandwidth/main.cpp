// Bandwidth of every ordered pair of memories in every variant: figure 5.2 of the GPUDirect thesis.
#include <meshpost/copy/copy.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "across.hpp"
#include "common/command.hpp"
#include "measure.hpp"

namespace {

using namespace meshpost;
using bandwidth::Plan;
using bandwidth::Result;

struct Options : apps::Common {
  std::vector<std::string> places, variants;
  std::vector<u64> sizes{u64{64} << 20};
  unsigned repetitions = 5;
  u64 seed = std::random_device{}();
  bool shared_memory = true;
};

std::string list(std::vector<std::string> const& names) {
  std::string text;
  for (auto const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Those of `all` that are named, in the order of `all`; all if none is.
template <class T, class Name>
std::vector<T> chosen(std::vector<T> const& all, std::vector<std::string> const& wanted,
                      char const* option, Name const& name) {
  std::vector<std::string> names;
  std::vector<T> found;
  for (auto const& one : all) {
    names.push_back(name(one));
    if (wanted.empty() || std::ranges::find(wanted, names.back()) != wanted.end())
      found.push_back(one);
  }
  for (auto const& one : wanted)
    if (std::ranges::find(names, one) == names.end())
      throw Error(Kind::bad_argument, std::string(option) + " " + one,
                  "this machine has none of that name", "there are " + list(names));
  return found;
}

Plan make_plan(Options const& options) {
  Plan plan;
  plan.devices = physical_devices(open_devices(options.devices));  // whose memories are the places
  use_devices_for_copies(plan.devices);
  std::vector<Place> places;
  for (auto const& info : discover(plan.devices).places) places.push_back(info.place);
  plan.places = chosen(places, options.places, "--places", [](auto& p) { return p.name(); });
  plan.variants = chosen(bandwidth::all_variants(plan.devices), options.variants, "--variants",
                         [](auto& variant) { return variant.name; });
  for (u64 const size : options.sizes) plan.sizes.push_back(Bytes{size});
  plan.repetitions = options.repetitions;
  plan.check = options.check;
  plan.seed = options.seed;
  return plan;
}

std::string size_name(u64 bytes) {
  char const* unit = "B";
  for (char const* const larger : {"KiB", "MiB", "GiB"})
    if (bytes >= 1024 && bytes % 1024 == 0) bytes /= 1024, unit = larger;
  return std::to_string(bytes) + " " + unit;
}

void print_matrix(Plan const& plan, std::vector<Result> const& results,
                  bandwidth::Variant const& variant, Bytes size) {
  bool const small = size < (u64{1} << 20);
  int width = 6;
  for (auto const& place : plan.places)
    width = std::max(width, static_cast<int>(place.name().size()));
  std::printf("\n%s (%s), %s: %s, from the row's place to the column's\n%*s", variant.name.c_str(),
              variant.meaning.c_str(), size_name(size).c_str(), small ? "us" : "GB/s", width, "");
  for (auto const& to : plan.places) std::printf(" %*s", width, to.name().c_str());
  for (auto const& from : plan.places) {
    std::printf("\n%-*s", width, from.name().c_str());
    for (auto const& to : plan.places) {
      auto const at = std::ranges::find_if(results, [&](Result const& one) {
        return one.from == from && one.to == to && one.variant == variant.name && one.size == size;
      });
      if (at == results.end() || !at->problem.empty())
        std::printf(" %*s", width, at == results.end() ? "-" : "FAILED");
      else
        std::printf(" %*.*f", width, small ? 2 : 1, small ? at->seconds * 1e6 : at->rate() * 1e-9);
    }
  }
  std::printf("\n");
}

bool write_json(std::string const& path, Plan const& plan, std::vector<Result> const& results) {
  nlohmann::json all = {{"fingerprint", fingerprint(plan.devices)},
                        {"repetitions", plan.repetitions},
                        {"seed", plan.seed},
                        {"places", nlohmann::json::array()},
                        {"variants", nlohmann::json::object()},
                        {"results", nlohmann::json::array()}};
  for (auto const& place : plan.places) all["places"].push_back(place.name());
  for (auto const& variant : plan.variants) all["variants"][variant.name] = variant.meaning;
  for (auto const& one : results)
    all["results"].push_back({{"from", one.from.name()},
                              {"to", one.to.name()},
                              {"variant", one.variant},
                              {"bytes", one.size.value},
                              {"seconds", one.seconds},
                              {"least_seconds", one.least},
                              {"rate", one.rate()},
                              {"checked", one.checked},
                              {"path", one.path},
                              {"problem", one.problem}});
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file.good()) std::fprintf(stderr, "bandwidth: %s can't be written\n", path.c_str());
  return file.good();
}

void show_progress(unsigned done, unsigned all) {
  std::fprintf(stderr, "\r[%-40.*s] %u of %u pairs", static_cast<int>(40 * done / all),
               "========================================", done, all);
  if (done == all) std::fprintf(stderr, "\n");
}

int report(Options const& options, Plan const& plan, std::vector<Result> const& results) {
  for (auto const size : plan.sizes)
    for (auto const& variant : plan.variants) print_matrix(plan, results, variant, size);
  u64 failed = 0;
  for (auto const& one : results) {
    if (one.problem.empty()) continue;
    ++failed;
    std::fprintf(stderr, "bandwidth: %s from %s to %s, %s: %s\n", one.variant.c_str(),
                 one.from.name().c_str(), one.to.name().c_str(), size_name(one.size).c_str(),
                 one.problem.c_str());
  }
  std::printf("\ncontents    %s\n", failed          ? "WRONG"
                                    : options.check ? "as they should be"
                                                    : "not checked");
  bool const written = options.json.empty() || write_json(options.json, plan, results);
  return failed || !written ? 1 : 0;
}

int run_across(Options const& options, JobMemory& job) {
  auto plan =
      bandwidth::plan_across(job, options.devices, options.places, options.variants, options.seed);
  for (u64 const size : options.sizes) plan.sizes.push_back(Bytes{size});
  plan.repetitions = options.repetitions;
  plan.check = options.check;
  auto const results = bandwidth::measure_across(job, plan);
  return job.process() == 0 ? report(options, plan, results) : 0;
}

int run(Options const& options) {
  if (!options.shared_memory)  // before the job's processes meet
    if (char const* const process = std::getenv("MESHPOST_PROCESS"))
      setenv("MESHPOST_NODE", process, 1);
  JobMemory job;
  if (job.processes() > 1) return run_across(options, job);
  auto const plan = make_plan(options);
  bool const progress = options.shows_progress();
  for (auto const& device : plan.devices)
    std::printf("device      %s (%s)\n", device->name().c_str(), device->info().model.c_str());
  std::fflush(stdout);
  return report(options, plan, bandwidth::measure(plan, [&](unsigned done, unsigned all) {
                  if (progress) show_progress(done, all);
                }));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Bandwidth between all memories of this machine, in every variant"};
  apps::add_common(app, "bandwidth", options,
                   {.check = "compare what arrived, bit for bit",
                    .refused = {{"--ranks", "copies are the host's, without ranks"}}});
  app.add_option("--size", options.sizes, "bytes of a copy, such as 64MiB; several with commas")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(u64{1}, u64{1} << 36));
  app.add_option("--places", options.places, "only these, such as pinned:0,cuda:1")->delimiter(',');
  app.add_option("--variants", options.variants, "only these, such as copy,driver")->delimiter(',');
  app.add_option("--repetitions", options.repetitions, "number of timed copies; the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10000u));
  app.add_option("--seed", options.seed, "seed of the copied bytes");
  app.add_flag("--shared-memory,!--no-shared-memory", options.shared_memory,
               "let several processes share memory (default), or not");
  return apps::run_app(app, argc, argv, options, "bandwidth", "--size",
                       [&] { return run(options); });
}
