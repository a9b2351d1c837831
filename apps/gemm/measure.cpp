#include "measure.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL  // nothing to link
#include <xxhash.h>

#include "common/gather.hpp"
#include "common/median.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::gemm {
namespace {

using apps::median;

constexpr u64 largest_compared = u64{1} << 31;  // elements; beyond that Freivalds alone
constexpr u32 rounds = 2;

// The first run initializes libraries and raises clocks. It doesn't count.
double timed(Executor& executor, u32 repeat, Work work, Distributed* result, Skew* skew = nullptr) {
  std::vector<double> seconds, begins, ends;
  std::vector<std::vector<double>> each;
  for (u32 r = 0; r <= repeat; ++r) {
    if (result) result->poison();  // so that the check sees the last run alone
    double const now = executor.run(work);
    if (r == 0) continue;
    seconds.push_back(now);
    auto const& times = executor.process_times();
    auto const [first, last] = std::ranges::minmax(times, {}, &ProcessTime::begin);
    auto const [first_end, last_end] = std::ranges::minmax(times, {}, &ProcessTime::end);
    begins.push_back(last.begin - first.begin);
    ends.push_back(last_end.end - first_end.end);
    each.resize(times.size());
    for (u32 p = 0; p < times.size(); ++p) each[p].push_back(times[p].end - times[p].begin);
  }
  if (skew) {
    skew->begin = median(begins);
    skew->end = median(ends);
    for (auto const& own : each) skew->processes.push_back(median(own));
  }
  return median(seconds);
}

// The product on the first device alone: its time and its result.
struct Alone {
  std::optional<double> seconds, openblas;
  std::optional<Distributed> c;
};

struct Setting {
  Options const& options;
  Devices const& devices;
  u32 threads;  // of each CPU device
  u64 a_seed, b_seed;
  blas::Team& team;

  Device& own() const { return own_device(devices); }
  bool cpu() const { return own().kind() == "cpu"; }
};

Alone measure_alone(Problem whole, Setting const& setting, bool fits_alone) {
  auto const& [options, devices, threads, a_seed, b_seed, team] = setting;
  auto const type = options.type;
  whole.grid = {1, 1};
  Alone alone;
  if (!fits_alone) return alone;
  try {
    Distributed a(devices, whole.grid, whole.m, whole.k, type);
    Distributed b(devices, whole.grid, whole.k, whole.n, type);
    alone.c.emplace(devices, whole.grid, whole.m, whole.n, type);
    a.fill(a_seed, team);
    b.fill(b_seed, team);
    // One call at a time: OpenBLAS splits the work among its threads itself.
    Executor executor(make_plan(whole, {}), devices, a, b, *alone.c, 1, true);
    if (setting.cpu()) {
      u32 const all = threads * static_cast<u32>(devices.size());
      blas::use_openblas_threads(std::min(all, setting.own().info().processors));
      alone.openblas = timed(executor, options.repeat, Work::all, nullptr);
      blas::use_openblas_threads(threads);
    }
    alone.seconds = timed(executor, options.repeat, Work::all, &*alone.c);
    return alone;
  } catch (Error const& error) {
    if (error.kind() != Kind::out_of_memory) throw;
    return {};
  }
}

}  // namespace

double Figures::operations() const {
  return 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k);
}

bool Figures::passed() const {
  for (auto const& bytes : fetched)
    if (!bytes.equal()) return false;
  if (reuse && reuse->freivalds && !reuse->freivalds->passed()) return false;
  for (auto const& schedule : schedules)
    if (schedule.freivalds && !schedule.freivalds->passed()) return false;
  return (!equal || equal->passed()) && (!freivalds || freivalds->passed());
}

u32 threads_each(Options const& options, Devices const& devices) {
  if (options.threads != 0) return options.threads;
  return std::max(1u, own_device(devices).info().processors / static_cast<u32>(devices.size()));
}

// XXH3 of all numbers, in the order of the whole matrix.
u64 fingerprint(Distributed const& matrix, blas::Team& team) {
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  u64 const width = columns_at_once(matrix.rows());
  for (u64 first = 0; first < matrix.columns(); first += width) {
    auto const numbers = matrix.read({first, std::min(width, matrix.columns() - first)}, team);
    XXH3_64bits_update(&hash, numbers.data(), numbers.size() * sizeof numbers[0]);
  }
  return XXH3_64bits_digest(&hash);
}

// Products that are added for an element of C.
u64 most_steps(Plan const& plan) {
  u64 steps = 0;
  for (auto const& device : plan.devices) steps = std::max<u64>(steps, device.steps.size());
  return steps;
}

// Plans that each lack one thing that the main one has.
std::vector<std::pair<std::string, PlanOptions>> other_schedules(PlanOptions const& best) {
  std::vector<std::pair<std::string, PlanOptions>> all;
  auto const add = [&](std::string const& name, auto const& change) {
    all.emplace_back(name, best);
    change(all.back().second);
  };
  add("order of links", [](auto& options) { options.order = Order::links; });
  add("order of device numbers", [](auto& options) { options.order = Order::numbers; });
  add("order of k", [](auto& options) { options.order = Order::k; });
  add("one buffer: a fetch waits for a product", [](auto& options) { options.slots = 1; });
  add("no small panels at first", [](auto& options) { options.small_first = false; });
  return all;
}

// Of all processes' devices.
std::vector<FetchedBytes> fetched_bytes(Executor const& executor, Problem const& problem,
                                        Spread const& spread, u64 size) {
  std::vector<FetchedBytes> all;
  for (u32 d = 0; d < problem.grid.devices(); ++d) {
    u64 copied = executor.fetched(d);
    if (spread.job)
      copied = std::stoull(gather(*spread.job, std::to_string(copied))[spread.owners[d]]);
    all.push_back({copied, fetched_by_formula(problem, d) * size});
  }
  return all;
}

Figures measure(Problem const& problem, Options const& options, Participants const& all,
                std::function<void(std::string const&)> const& note) {
  auto const& devices = all.devices;
  auto const& spread = all.spread;
  auto const type = options.type;
  blas::Team team(std::clamp(std::thread::hardware_concurrency(), 1u, 32u));
  Setting const setting{
      options, devices, threads_each(options, devices), 2 * options.seed, 2 * options.seed + 1,
      team};
  Figures figures;
  figures.problem = problem;
  auto const plan = make_plan(problem, plan_options(problem, options, all));
  figures.panel = plan.options.panel;
  require_memory(plan, type, all);
  figures.memory = memory_use(plan, type, all.memories);
  figures.exchanged = exchanged(plan) * blas::size_of(type);

  note("one device");
  std::vector<DeviceMemory> first = all.memories;
  if (!first.empty()) first.resize(1);
  auto const whole = make_plan({problem.m, problem.n, problem.k, {1, 1}}, {});
  bool const fits_alone = memory_use(whole, type, first).fits();
  auto alone = spread.first() ? measure_alone(problem, setting, fits_alone) : Alone{};
  // The result of one device stays beside the matrices only if it is compared and there is room.
  u64 const kept = problem.m * problem.n * blas::size_of(type);
  if (devices.size() == 1 || problem.m * problem.n > largest_compared ||
      !memory_use(plan, type, all.memories, kept).fits())
    alone.c.reset();
  figures.alone = alone.seconds;
  figures.openblas = alone.openblas;

  note("filling");
  if (spread.job) meet(*spread.job);  // process 0 has measured alone meanwhile
  Distributed a(devices, problem.grid, problem.m, problem.k, type, spread);
  Distributed b(devices, problem.grid, problem.k, problem.n, type, spread);
  Distributed c(devices, problem.grid, problem.m, problem.n, type, spread);
  a.fill(setting.a_seed, team);
  b.fill(setting.b_seed, team);
  // Several CPU devices compute at once: OpenBLAS with threads of its own would serialize their
  // calls.
  bool const several = setting.cpu() && devices.size() > 1;
  if (several) blas::use_openblas_threads(1);
  auto const execute = [&](Plan const& by) {
    return std::make_unique<Executor>(by, devices, a, b, c, several ? setting.threads : 1,
                                      options.peer || setting.cpu());
  };
  auto const checked = [&](Distributed const& result, Plan const& by, u32 products) {
    std::optional<Verdict> verdict;
    if (options.check && spread.first())  // the process that gathers the others' blocks
      verdict = freivalds(result, problem.k, setting.a_seed, setting.b_seed, most_steps(by), rounds,
                          team, products);
    return verdict;
  };
  auto executor = execute(plan);
  figures.buffers = executor->buffers();
  note("all devices");
  Skew skew{spread.one_clock, 0, 0, {}};
  figures.seconds = timed(*executor, options.repeat, Work::all, &c, &skew);
  if (spread.job) figures.skew = skew;
  figures.fetched = fetched_bytes(*executor, problem, spread, blas::size_of(type));
  if (options.check && spread.first()) {
    figures.fingerprint = fingerprint(c, team);
    note("checking");
    if (alone.c) figures.equal = compare(c, *alone.c, problem.k, most_steps(plan), team);
    figures.freivalds = checked(c, plan, 1);
  }
  note("halves");  // last: C is wrong afterwards
  figures.products = timed(*executor, options.repeat, Work::products, nullptr);
  figures.fetches = timed(*executor, options.repeat, Work::fetches, nullptr);
  if (options.reuse > 1) {
    note("reusing C");
    std::vector<double> seconds;
    for (u32 r = 0; r <= options.repeat; ++r) {
      executor->left().fill(setting.a_seed, team);
      double sum = 0;
      for (u32 product = 0; product < options.reuse; ++product) {
        if (product != 0) executor->reuse_result();
        sum += executor->run();
      }
      if (r != 0) seconds.push_back(sum);
    }
    figures.reuse = {options.reuse, median(seconds),
                     checked(executor->result(), plan, options.reuse)};
    if (spread.job) meet(*spread.job);  // the first process has read the others' blocks
    a.fill(setting.a_seed, team);       // it may have become a result
  }
  executor.reset();  // its buffers are needed
  if (options.schedules)
    for (auto const& [name, changed] : other_schedules(plan.options)) {
      note(name);
      auto const other = make_plan(problem, changed);
      Schedule schedule{name, 0, other.devices == plan.devices, {}};
      schedule.seconds = timed(*execute(other), options.repeat, Work::all, &c);
      schedule.freivalds = checked(c, other, 1);
      if (spread.job) meet(*spread.job);
      figures.schedules.push_back(schedule);
    }
  return figures;
}

}  // namespace meshpost::gemm
