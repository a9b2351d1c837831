// C = A B on several devices: each multiplies blocks that it has while it fetches blocks of others.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/gather.hpp"
#include "measure.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/copy/copy.hpp"
#include "meshpost/device/backend.hpp"

namespace {

using namespace meshpost;
using gemm::Devices;
using gemm::Figures;
using gemm::Options;

std::string text(char const* format, auto... values) {
  char line[200];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

double gigaflops(Figures const& figures, double seconds) {
  return figures.operations() / seconds * 1e-9;
}

std::string verdict(std::optional<gemm::Verdict> const& checked) {
  if (!checked) return "not made";
  return text("%s, error %.2e of %.2e allowed", checked->passed() ? "passed" : "FAILED",
              checked->error, checked->bound);
}

void print(Figures const& f, double devices) {
  auto const& p = f.problem;
  std::printf("\nsize        m %llu, n %llu, k %llu on a grid of %ux%u\n", p.m, p.n, p.k,
              p.grid.rows, p.grid.columns);
  std::printf("time        %.6f s, %.5g GFlop/s\n", f.seconds, gigaflops(f, f.seconds));
  if (f.alone)
    std::printf("one device  %.6f s, %.5g GFlop/s: speed-up %.3f, parallel efficiency %.3f\n",
                *f.alone, gigaflops(f, *f.alone), *f.alone / f.seconds,
                *f.alone / f.seconds / devices);
  else std::printf("one device  too large for it\n");
  if (f.openblas)
    std::printf("OpenBLAS    %.6f s, %.5g GFlop/s in one call with all threads: ratio %.3f\n",
                *f.openblas, gigaflops(f, *f.openblas), *f.openblas / f.seconds);
  std::printf("exchanged   %llu bytes in panels of %llu, %llu bytes of buffers on all devices\n",
              f.exchanged, f.panel, f.buffers);
  std::printf(
      "overlap     products alone %.6f s, fetches alone %.6f s: %.6f s of them hidden, "
      "%.6f s not\n",
      f.products, f.fetches, f.hidden(), f.exposed());
  std::printf("one device's product   %s\n", verdict(f.equal).c_str());
  std::printf("Freivalds' check       %s\n", verdict(f.freivalds).c_str());
  if (f.fingerprint) std::printf("fingerprint of C       %016llx\n", *f.fingerprint);
  std::fflush(stdout);
}

nlohmann::json json(std::optional<gemm::Verdict> const& checked) {
  if (!checked) return nullptr;
  return {{"passed", checked->passed()}, {"error", checked->error}, {"bound", checked->bound}};
}

nlohmann::json json(Figures const& f, double devices) {
  auto const maybe = [](std::optional<double> value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  };
  nlohmann::json all = {{"m", f.problem.m},
                        {"n", f.problem.n},
                        {"k", f.problem.k},
                        {"seconds", f.seconds},
                        {"gflops", gigaflops(f, f.seconds)},
                        {"one_device_seconds", maybe(f.alone)},
                        {"openblas_seconds", maybe(f.openblas)},
                        {"products_seconds", f.products},
                        {"fetches_seconds", f.fetches},
                        {"hidden_seconds", f.hidden()},
                        {"exposed_seconds", f.exposed()},
                        {"exchanged_bytes", f.exchanged},
                        {"buffer_bytes", f.buffers},
                        {"panel", f.panel},
                        {"compared", json(f.equal)},
                        {"freivalds", json(f.freivalds)},
                        {"fingerprint", f.fingerprint ? nlohmann::json(*f.fingerprint) : nullptr}};
  if (f.alone) {
    all["one_device_gflops"] = gigaflops(f, *f.alone);
    all["speedup"] = *f.alone / f.seconds;
    all["efficiency"] = *f.alone / f.seconds / devices;
  }
  return all;
}

// The devices of all processes, those of others null.
struct All {
  Devices devices;
  gemm::Spread spread;
  std::vector<std::string> names;
};

All open_all(Options& options, JobMemory& job) {
  if (job.processes() == 1) {
    All all{open_devices(options.devices), {}, {}};
    for (auto const& device : all.devices)
      all.names.push_back(device->name() + " (" + device->info().model + ")");
    return all;
  }
  All all{{}, {&job, {}}, {}};
  auto const own = open_devices(devices_in_job(options.devices, job.process()));
  nlohmann::json mine = {{"kind", own.front()->kind()}, {"names", nlohmann::json::array()}};
  for (auto const& device : own)
    mine["names"].push_back(device->name() + " (" + device->info().model + ")");
  options.seed = std::stoull(gather(job, std::to_string(options.seed)).front());
  auto const texts = gather(job, mine.dump());
  for (u32 process = 0; process < texts.size(); ++process) {
    auto const theirs = nlohmann::json::parse(texts[process]);
    if (theirs["kind"] != mine["kind"])
      throw Error(Kind::bad_argument, "spread the matrices over the devices",
                  "processes have devices of different kinds", "give all the same --devices");
    for (u32 i = 0; i < theirs["names"].size(); ++i) {
      all.devices.push_back(process == job.process() ? own[i] : nullptr);
      all.spread.owners.push_back(process);
      all.names.push_back("process " + std::to_string(process) + "'s " +
                          theirs["names"][i].get<std::string>());
    }
  }
  return all;
}

int run(Options options) {
  JobMemory job;
  auto const [devices, spread, device_names] = open_all(options, job);
  auto const count = static_cast<u32>(devices.size());
  auto const kind = gemm::own_device(devices).kind();
  blas::require(kind, options.type);
  auto const grid = options.grid.value_or(gemm::default_grid(count));
  if (grid.devices() != count)
    throw Error(Kind::bad_argument, "spread the matrices over the devices",
                text("--grid %ux%u has %u places for %u devices", grid.rows, grid.columns,
                     grid.devices(), count),
                "choose a grid with as many places, or other --devices");
  Devices own;
  std::ranges::copy_if(devices, std::back_inserter(own), [](auto& one) { return one != nullptr; });
  use_devices_for_copies(own);
  if (options.peer && own.size() > 1) backend(kind).connect(own);

  nlohmann::json const names = device_names;
  if (spread.first()) {
    for (auto const& name : device_names) std::printf("device      %s\n", name.c_str());
    std::printf("numbers     %s, seed %llu\n", std::string(blas::name(options.type)).c_str(),
                options.seed);
    if (kind == "cpu")
      std::printf("threads     %u for each device\n", gemm::threads_each(options, devices));
    else std::printf("peer        %s\n", options.peer ? "on" : "off");
    std::fflush(stdout);
  }

  bool const progress = options.shows_progress();
  bool passed = true;
  nlohmann::json results = nlohmann::json::array();
  u64 done = 0;
  for (auto problem : options.problems) {
    problem.grid = grid;
    auto const note = [&](std::string const& what) {
      if (progress && spread.first())
        std::fprintf(stderr, "\r\033[K[%llu/%zu] n %llu: %s", done + 1, options.problems.size(),
                     problem.n, what.c_str());
    };
    auto const figures = gemm::measure(problem, options, devices, spread, note);
    ++done;
    if (!spread.first()) continue;
    if (progress) std::fprintf(stderr, "\r\033[K");
    print(figures, count);
    passed = passed && figures.passed();
    results.push_back(json(figures, count));
  }
  if (!options.json.empty() && spread.first()) {
    nlohmann::json const all = {
        {"devices", names},
        {"grid", {grid.rows, grid.columns}},
        {"type", blas::name(options.type)},
        {"peer", kind == "cpu" ? nlohmann::json() : nlohmann::json(options.peer)},
        {"seed", options.seed},
        {"repeat", options.repeat},
        {"results", results}};
    std::ofstream file(options.json);
    file << all.dump(1) << '\n';
    file.close();
    if (!file)
      throw Error(Kind::bad_environment, "write " + options.json, "it can't be written",
                  "choose another file with --json");
  }
  return passed ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  gemm::Texts texts;
  CLI::App app{"C = A B with matrices spread over the devices, which fetch each other's parts"};
  gemm::add_options(app, options, texts);
  return apps::run_app(app, argc, argv, options, "gemm", "--size", [&] {
    gemm::read_texts(texts, options);
    return run(options);
  });
}
