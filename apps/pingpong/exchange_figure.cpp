// Figures 13 and 18: measures, prints and writes the ping-pong.
#include <algorithm>
#include <cstdio>

#include "common/figures.hpp"
#include "exchange.hpp"
#include "report.hpp"

namespace pingpong {

using namespace meshpost;

namespace {

struct Point {
  Task task;
  Times times;
  std::string problem;
};

char const* name(MemoryKind memory) { return memory == MemoryKind::device ? "device" : "host"; }

u64 kernel_ns(Options const& options) {
  double const us = options.kernel_us >= 0 ? options.kernel_us : options.figure == "18" ? 5 : 0;
  return static_cast<u64>(us * 1000 + 0.5);
}

std::vector<Task> tasks_of(Options const& options, std::vector<u64> const& sizes, u32 trips) {
  std::vector<Task> tasks;
  for (auto const memory : {MemoryKind::device, MemoryKind::pinned})
    for (u64 const size : sizes)
      for (auto const mode : all_modes)
        if (options.has(mode) &&
            std::ranges::find(options.buffers, name(memory)) != options.buffers.end())
          tasks.push_back({mode, memory, size, kernel_ns(options), trips});
  return tasks;
}

// Prints the points of one memory: a row for each size.
void print_table(Options const& options, std::vector<Point> const& points, MemoryKind memory) {
  std::printf("\n%s buffers: round trip in us (CPU time of the process in us)\n%10s", name(memory),
              "");
  for (auto const mode : all_modes)
    if (options.has(mode)) std::printf(" %21s", pingpong::name(mode).c_str());
  u64 row = 0;
  for (auto const& [task, times, problem] : points) {
    if (task.memory != memory) continue;
    if (task.bytes != row) std::printf("\n%10s", size_name(row = task.bytes).c_str());
    if (problem.empty()) std::printf(" %10.2f (%8.2f)", times.median * 1e6, times.cpu * 1e6);
    else std::printf(" %21s", "WRONG");
  }
  std::printf("\n");
}

// The largest ratio of a size's time to that of the size before, of each series.
nlohmann::json jumps_of(Options const& options, std::vector<Point> const& points) {
  auto all = nlohmann::json::array();
  std::printf("\nlargest jump of the time from one size to the next\n");
  for (auto const memory : {MemoryKind::device, MemoryKind::pinned})
    for (auto const mode : all_modes) {
      Point const *before = nullptr, *from = nullptr, *to = nullptr;
      double most = 0;
      for (auto const& point : points) {
        if (point.task.mode != mode || point.task.memory != memory) continue;
        double const ratio = before ? point.times.median / before->times.median : 0;
        if (ratio > most) most = ratio, from = before, to = &point;
        before = &point;
      }
      if (!to || !options.has(mode)) continue;
      std::printf("%-7s %-7s %.2f, from %s to %s\n", name(memory), pingpong::name(mode).c_str(),
                  most, size_name(from->task.bytes).c_str(), size_name(to->task.bytes).c_str());
      all.push_back({{"buffer", name(memory)},
                     {"mode", pingpong::name(mode)},
                     {"ratio", most},
                     {"from_bytes", from->task.bytes},
                     {"to_bytes", to->task.bytes}});
    }
  return all;
}

WorldOptions world_options(Options const& options) {
  WorldOptions wanted;
  wanted.devices = devices_of(options);
  bool const gpu = open_devices(wanted.devices).front()->kind() == "cuda";
  wanted.ranks = options.ranks != 0 ? options.ranks : gpu ? 32 : 1;
  return wanted;
}

}  // namespace

int run_exchange(Options const& options) {
  auto sizes = options.sizes.empty() ? fine_sizes() : options.sizes;
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  Exchange exchange(world_options(options), Bytes{sizes.back()});
  auto facts = facts_of(options, exchange.world());
  facts["kernel_seconds"] = static_cast<double>(kernel_ns(options)) * 1e-9;
  bool const gpu = exchange.world().devices().front()->kind() == "cuda";
  u32 const trips = options.trips != 0 ? options.trips : gpu ? 100 : 20;
  facts["trips"] = trips;
  auto const tasks = tasks_of(options, sizes, trips);
  std::vector<Point> points;
  u32 wrong = 0;
  for (auto const& task : tasks) {
    points.push_back(
        {task, measure(options.repetitions, task.rounds, [&] { return exchange.run(task); }), ""});
    auto& point = points.back();
    if (options.check) point.problem = exchange.check(task, options.seed + points.size());
    if (!point.problem.empty()) {
      ++wrong;
      std::fprintf(stderr, "pingpong: %s, %s buffers, %s: %s\n", pingpong::name(task.mode).c_str(),
                   name(task.memory), size_name(task.bytes).c_str(), point.problem.c_str());
    }
    auto result = json_of(point.times);
    result.update({{"mode", pingpong::name(task.mode)},
                   {"buffer", name(task.memory)},
                   {"bytes", task.bytes},
                   {"problem", point.problem}});
    facts["results"].push_back(result);
    if (options.shows_progress())
      show_progress(static_cast<u32>(points.size()), static_cast<u32>(tasks.size()));
  }
  for (auto const memory : {MemoryKind::device, MemoryKind::pinned})
    if (std::ranges::find(options.buffers, name(memory)) != options.buffers.end())
      print_table(options, points, memory);
  if (sizes.size() > 1) facts["jumps"] = jumps_of(options, points);
  std::printf("\nmessages    %s\n", wrong           ? "WRONG"
                                    : options.check ? "as they should be"
                                                    : "not checked");
  if (!options.json.empty()) meshpost::apps::write_figures(options.json, facts);
  return wrong == 0 ? 0 : 1;
}

}  // namespace pingpong
