#include "plan.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "meshpost/base/error.hpp"

namespace meshpost::gemm {
namespace {

// A range of k within which A and B each have one owner, for one device.
struct Stretch {
  Range k;
  u32 a_owner = 0, b_owner = 0;
};

u32 distance(PlanOptions const& options, u32 one, u32 other) {
  if (options.order == Order::numbers) return one > other ? one - other : other - one;
  return options.distances.empty() || one == other ? 0 : options.distances[one][other];
}

std::vector<Stretch> stretches(Problem const& problem, u32 row, u32 column) {
  auto const [rows, columns] = problem.grid;
  std::vector<Stretch> found;
  u32 a = 0, b = 0;  // column of A's owner, row of B's
  for (u64 first = 0; first < problem.k;) {
    while (part(problem.k, columns, a).end() <= first) ++a;
    while (part(problem.k, rows, b).end() <= first) ++b;
    u64 const end = std::min(part(problem.k, columns, a).end(), part(problem.k, rows, b).end());
    found.push_back({{first, end - first}, row * columns + a, b * columns + column});
    first = end;
  }
  return found;
}

// Appends a fetch and returns its position.
i32 fetch(std::vector<Fetch>& fetches, std::vector<Step> const& steps, i32 Step::* operand,
          u32 owner, Range k, u32 slots) {
  auto const position = static_cast<u32>(fetches.size());
  Fetch next{owner, k, position % slots, 0};
  if (position >= slots) {  // the step that used the buffer last
    auto const before = static_cast<i32>(position - slots);
    for (u32 s = 0; s < steps.size(); ++s)
      if (steps[s].*operand == before) next.after = s + 1;
  }
  fetches.push_back(next);
  return static_cast<i32>(position);
}

DevicePlan plan_device(Problem const& problem, PlanOptions const& options, u32 device) {
  auto const columns = problem.grid.columns;
  auto order = stretches(problem, device / columns, device % columns);
  auto const farness = [&](Stretch const& stretch) {
    u32 const remote = (stretch.a_owner != device) + (stretch.b_owner != device);
    // Among equally far devices each begins with the next after itself, so that not all fetch from
    // one.
    u64 const turn =
        (stretch.k.first + problem.k - part(problem.k, columns, device % columns).first) %
        problem.k;
    return std::tuple(remote != 0,
                      std::max(distance(options, device, stretch.a_owner),
                               distance(options, device, stretch.b_owner)),
                      turn);
  };
  if (options.order != Order::k)
    std::stable_sort(order.begin(), order.end(), [&](Stretch const& one, Stretch const& other) {
      return farness(one) < farness(other);
    });

  DevicePlan plan;
  u64 width = options.small_first ? std::max<u64>(1, options.panel / 8) : options.panel;
  for (auto const& [k, a_owner, b_owner] : order) {
    bool const a_here = a_owner == device, b_here = b_owner == device;
    if (a_here && b_here) {
      plan.steps.push_back({k, Step::in_place, Step::in_place});
      width = options.panel;
      continue;
    }
    for (u64 first = k.first; first < k.end(); width = std::min(2 * width, options.panel)) {
      Range const panel{first, std::min(width, k.end() - first)};
      Step step{panel, Step::in_place, Step::in_place};
      if (!a_here) step.a = fetch(plan.a, plan.steps, &Step::a, a_owner, panel, options.slots);
      if (!b_here) step.b = fetch(plan.b, plan.steps, &Step::b, b_owner, panel, options.slots);
      plan.steps.push_back(step);
      first = panel.end();
    }
  }
  return plan;
}

}  // namespace

Range part(u64 count, u32 parts, u32 index) {
  u64 const each = count / parts, more = count % parts;
  return {each * index + std::min<u64>(index, more), each + (index < more ? 1 : 0)};
}

Grid default_grid(u32 devices) {
  u32 columns = 1;
  for (u32 c = 1; c * c <= devices; ++c)
    if (devices % c == 0) columns = c;
  return {devices / columns, columns};
}

Grid parse_grid(std::string const& text) {
  Grid grid;
  char rest = 0;
  bool const digits = text.find_first_not_of("0123456789x") == std::string::npos;
  if (!digits || std::sscanf(text.c_str(), "%5ux%5u%c", &grid.rows, &grid.columns, &rest) != 2 ||
      grid.rows == 0 || grid.columns == 0)
    throw Error(Kind::bad_argument, "read the grid of devices", "it is '" + text + "'",
                "write it as ROWSxCOLUMNS, such as 2x3");
  return grid;
}

Plan make_plan(Problem const& problem, PlanOptions const& options) {
  auto const [rows, columns] = problem.grid;
  u32 const least = std::max({1u, rows, columns});
  if (std::min({problem.m, problem.n, problem.k}) < least)
    throw Error(Kind::bad_argument, "spread the matrices over the devices",
                "m, n, k are " + std::to_string(problem.m) + ", " + std::to_string(problem.n) +
                    ", " + std::to_string(problem.k) + " on a grid of " + std::to_string(rows) +
                    "x" + std::to_string(columns),
                "use at least " + std::to_string(least) + " for each, or fewer devices");
  if (options.panel == 0 || options.slots == 0)
    throw Error(Kind::bad_argument, "plan the product",
                "panels are " + std::to_string(options.panel) + " wide, in " +
                    std::to_string(options.slots) + " buffers",
                "use at least 1 of each");
  u32 const devices = problem.grid.devices();
  bool fitting = options.distances.empty() || options.distances.size() == devices;
  for (auto const& row : options.distances) fitting = fitting && row.size() == devices;
  if (!fitting)
    throw Error(Kind::bad_argument, "plan the product",
                "the table of distances is not one of " + std::to_string(devices) + " devices",
                "give a row and a column for each device, or no table");
  Plan plan{problem, options, {}};
  for (u32 device = 0; device < devices; ++device)
    plan.devices.push_back(plan_device(problem, options, device));
  return plan;
}

u64 default_panel(u64 k) { return std::clamp<u64>(k / 2, 512, 16384); }

u64 exchanged(Plan const& plan) {
  auto const& [m, n, k, grid] = plan.problem;
  u64 sum = 0;
  for (u32 d = 0; d < plan.devices.size(); ++d) {
    u64 const rows = part(m, grid.rows, d / grid.columns).count;
    u64 const columns = part(n, grid.columns, d % grid.columns).count;
    for (auto const& fetch : plan.devices[d].a) sum += fetch.k.count * rows;
    for (auto const& fetch : plan.devices[d].b) sum += fetch.k.count * columns;
  }
  return sum;
}

u64 fetched_by_formula(Problem const& problem, u32 device) {
  auto const& [m, n, k, grid] = problem;
  u32 const row = device / grid.columns, column = device % grid.columns;
  return part(m, grid.rows, row).count * (k - part(k, grid.columns, column).count) +
         (k - part(k, grid.rows, row).count) * part(n, grid.columns, column).count;
}

u64 block_numbers(Problem const& problem, u32 device) {
  auto const& [m, n, k, grid] = problem;
  u32 const row = device / grid.columns, column = device % grid.columns;
  u64 const rows = part(m, grid.rows, row).count, columns = part(n, grid.columns, column).count;
  return rows * part(k, grid.columns, column).count + part(k, grid.rows, row).count * columns +
         rows * columns;
}

u64 buffer_numbers(Plan const& plan, u32 device) {
  auto const& [m, n, k, grid] = plan.problem;
  auto const buffers = [&](std::vector<Fetch> const& fetches, u64 across) {
    return std::min<u64>(plan.options.slots, fetches.size()) * slot_width(fetches) * across;
  };
  return buffers(plan.devices[device].a, part(m, grid.rows, device / grid.columns).count) +
         buffers(plan.devices[device].b, part(n, grid.columns, device % grid.columns).count);
}

u64 slot_width(std::vector<Fetch> const& fetches) {
  u64 width = 0;
  for (auto const& fetch : fetches) width = std::max(width, fetch.k.count);
  return width;
}

}  // namespace meshpost::gemm
