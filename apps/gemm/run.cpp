// C = A B on several devices: each multiplies blocks that it has while it fetches blocks of others.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/figures.hpp"
#include "meshpost/base/error.hpp"
#include "report.hpp"

namespace {

using namespace meshpost;
using gemm::Options;

std::string text(char const* format, auto... values) {
  char line[200];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

}  // namespace

int meshpost::gemm::run(Options options) {
  JobMemoryOptions sharing;
  if (!options.ipc) sharing.fastest = CopyPath::staged;
  JobMemory job(sharing);
  if (!options.ipc && job.processes() == 1)
    throw Error(Kind::bad_argument, "multiply with --ipc off", "there is only one process",
                "start several with --processes, or leave --ipc out");
  auto const all = open_all(options, job);
  auto const& [devices, spread, device_names, memories, distances] = all;
  auto const count = static_cast<u32>(devices.size());
  auto const kind = gemm::own_device(devices).kind();
  blas::require(kind, options.type);
  auto const grid = options.grid.value_or(gemm::default_grid(count));
  if (grid.devices() != count)
    throw Error(Kind::bad_argument, "spread the matrices over the devices",
                text("--grid %ux%u has %u places for %u devices", grid.rows, grid.columns,
                     grid.devices(), count),
                "choose a grid with as many places, or other --devices");
  for (auto const& problem : options.problems)
    if (options.reuse > 1 && problem.n != problem.k)
      throw Error(
          Kind::bad_argument, "multiply with --reuse",
          text("n is %llu and k is %llu, but C must have the shape of A", problem.n, problem.k),
          "choose a --size with n = k");
  if (options.largest) {
    u64 const n = gemm::largest_size(grid, options, all);
    options.problems = {{n, n, n, {}}};
  }
  nlohmann::json const names = device_names;
  if (spread.first()) {
    for (auto const& name : device_names) std::printf("device      %s\n", name.c_str());
    std::printf("numbers     %s, seed %llu\n", std::string(blas::name(options.type)).c_str(),
                options.seed);
    if (kind == "cpu")
      std::printf("threads     %u for each device\n", gemm::threads_each(options, devices));
    else std::printf("peer        %s\n", options.peer ? "on" : "off");
    if (options.largest)
      std::printf("largest N   %llu of the memory that is free\n", options.problems.front().n);
    std::fflush(stdout);
  }

  bool const progress = options.shows_progress();
  bool passed = true;
  nlohmann::json results = nlohmann::json::array();
  std::vector<gemm::Rate> rates;
  u64 done = 0;
  for (auto problem : options.problems) {
    problem.grid = grid;
    auto const note = [&](std::string const& what) {
      if (progress && spread.first())
        std::fprintf(stderr, "\r\033[K[%llu/%zu] n %llu: %s", done + 1, options.problems.size(),
                     problem.n, what.c_str());
    };
    auto const figures = gemm::measure(problem, options, all, note);
    ++done;
    if (!spread.first()) continue;
    if (progress) std::fprintf(stderr, "\r\033[K");
    gemm::print(figures, count);
    rates.push_back(gemm::rate(figures));
    passed = passed && figures.passed();
    results.push_back(gemm::json(figures, count));
  }
  auto const by_power = gemm::by_power_of_two(rates);
  if (spread.first()) gemm::print(by_power);
  if (!options.json.empty() && spread.first()) {
    nlohmann::json const whole = {
        {"devices", names},
        {"grid", {grid.rows, grid.columns}},
        {"type", blas::name(options.type)},
        {"peer", kind == "cpu" ? nlohmann::json() : nlohmann::json(options.peer)},
        {"seed", options.seed},
        {"repeat", options.repeat},
        {"processes", job.processes()},
        {"ipc", job.processes() == 1 ? nlohmann::json() : nlohmann::json(options.ipc)},
        {"by_power_of_two", gemm::json(by_power)},
        {"results", results}};
    apps::write_figures(options.json, whole);
  }
  return passed ? 0 : 1;
}
