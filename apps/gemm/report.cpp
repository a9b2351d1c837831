#include "report.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/median.hpp"

namespace meshpost::gemm {
namespace {

double gigaflops(Figures const& figures, double seconds) {
  return figures.operations() / seconds * 1e-9;
}

std::string verdict(std::optional<Verdict> const& checked) {
  if (!checked) return "not made";
  char line[100];
  std::snprintf(line, sizeof line, "%s, error %.2e of %.2e allowed",
                checked->passed() ? "passed" : "FAILED", checked->error, checked->bound);
  return line;
}

}  // namespace

void print(Figures const& f, u32 devices) {
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
  std::printf(
      "memory      %llu bytes needed of %llu in the fullest, %llu of buffers on all devices\n",
      f.memory.needed, f.memory.usable, f.buffers);
  std::printf("exchanged   %llu bytes in panels of %llu\n", f.exchanged, f.panel);
  for (u32 d = 0; d < f.fetched.size(); ++d)
    std::printf("  device %-3u fetched %llu bytes, by formula %llu%s\n", d, f.fetched[d].copied,
                f.fetched[d].formula, f.fetched[d].equal() ? "" : ": DIFFERS");
  std::printf(
      "overlap     products alone %.6f s, fetches alone %.6f s: %.6f s of them hidden, "
      "%.6f s not\n",
      f.products, f.fetches, f.hidden(), f.exposed());
  if (f.skew) {
    if (f.skew->one_clock)
      std::printf("skew        processes begin within %.6f s and end within %.6f s\n",
                  f.skew->begin, f.skew->end);
    else std::printf("skew        not known between hosts, which have clocks of their own\n");
    for (u32 i = 0; i < f.skew->processes.size(); ++i)
      std::printf("  process %-3u %.6f s\n", i, f.skew->processes[i]);
  }
  if (f.reuse)
    std::printf(
        "reused C    %u products in a row %.6f s, %.5g GFlop/s, %.3f of one product's time each\n"
        "            Freivalds' check %s\n",
        f.reuse->products, f.reuse->seconds, gigaflops(f, f.reuse->seconds / f.reuse->products),
        f.reuse->seconds / f.reuse->products / f.seconds, verdict(f.reuse->freivalds).c_str());
  if (!f.schedules.empty())
    std::printf("schedules   all fetches, then all products (sum of both alone): %.6f s\n",
                f.products + f.fetches);
  for (auto const& schedule : f.schedules)
    std::printf("            %s: %.6f s, %.5g GFlop/s%s, check %s\n", schedule.name.c_str(),
                schedule.seconds, gigaflops(f, schedule.seconds),
                schedule.same ? " (the plan above)" : "", verdict(schedule.freivalds).c_str());
  std::printf("one device's product   %s\n", verdict(f.equal).c_str());
  std::printf("Freivalds' check       %s\n", verdict(f.freivalds).c_str());
  if (f.fingerprint) std::printf("fingerprint of C       %016llx\n", *f.fingerprint);
  std::fflush(stdout);
}

namespace {

nlohmann::json json(std::optional<Verdict> const& checked) {
  if (!checked) return nullptr;
  return {{"passed", checked->passed()}, {"error", checked->error}, {"bound", checked->bound}};
}

}  // namespace

nlohmann::json json(Figures const& f, u32 devices) {
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
                        {"fetched_bytes", nlohmann::json::array()},
                        {"buffer_bytes", f.buffers},
                        {"needed_bytes", f.memory.needed},
                        {"usable_bytes", f.memory.usable},
                        {"panel", f.panel},
                        {"compared", json(f.equal)},
                        {"freivalds", json(f.freivalds)},
                        {"fingerprint", f.fingerprint ? nlohmann::json(*f.fingerprint) : nullptr}};
  if (f.skew) {
    auto const known = [&](double seconds) {
      return f.skew->one_clock ? nlohmann::json(seconds) : nlohmann::json();
    };
    all["skew"] = {{"begin_seconds", known(f.skew->begin)},
                   {"end_seconds", known(f.skew->end)},
                   {"process_seconds", f.skew->processes}};
  }
  if (f.reuse)
    all["reuse"] = {{"products", f.reuse->products},
                    {"seconds", f.reuse->seconds},
                    {"freivalds", json(f.reuse->freivalds)}};
  for (auto const& schedule : f.schedules)
    all["schedules"].push_back({{"name", schedule.name},
                                {"seconds", schedule.seconds},
                                {"same_plan", schedule.same},
                                {"freivalds", json(schedule.freivalds)}});
  for (auto const& bytes : f.fetched)
    all["fetched_bytes"].push_back({{"copied", bytes.copied}, {"formula", bytes.formula}});
  if (f.alone) {
    all["one_device_gflops"] = gigaflops(f, *f.alone);
    all["speedup"] = *f.alone / f.seconds;
    all["efficiency"] = *f.alone / f.seconds / devices;
  }
  return all;
}

Rate rate(Figures const& f) {
  bool const square = f.problem.m == f.problem.n && f.problem.n == f.problem.k;
  return {square ? f.problem.n : 0, gigaflops(f, f.seconds), f.alone ? gigaflops(f, *f.alone) : 0};
}

std::vector<PowerRow> by_power_of_two(std::vector<Rate> rates) {
  std::ranges::sort(rates, {}, &Rate::n);
  std::array<std::vector<Rate>, 6> classes;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    u64 const n = rates[i].n;
    bool const after = i > 0 && rates[i - 1].n + 1 == n;
    bool const before = i + 1 < rates.size() && rates[i + 1].n == n + 1;
    if (n != 0 && (after || before))
      classes[std::min<std::size_t>(5, static_cast<std::size_t>(std::countr_zero(n)))].push_back(
          rates[i]);
  }
  auto const middle = [](std::vector<Rate> const& of, double Rate::* field) {
    std::vector<double> values;
    for (auto const& one : of) values.push_back(one.*field);
    return std::ranges::find(values, 0.0) == values.end() ? apps::median(values) : 0;
  };
  std::vector<PowerRow> rows;
  for (u32 power = 0; power < classes.size(); ++power)
    if (auto const& of = classes[power]; !of.empty())
      rows.push_back({1u << power, of.size(), middle(of, &Rate::gflops), middle(of, &Rate::alone)});
  return rows;
}

void print(std::vector<PowerRow> const& rows) {
  if (rows.empty()) return;
  std::printf(
      "\nmedian GFlop/s by the largest power of two that divides N, of consecutive N\n"
      "%8s %7s %12s %12s\n",
      "divisor", "sizes", "all devices", "one device");
  for (auto const& row : rows) {
    std::printf("%7u%s %7zu %12.5g ", row.power, row.power == 32 ? "+" : " ", row.sizes,
                row.gflops);
    if (row.alone > 0) std::printf("%12.5g\n", row.alone);
    else std::printf("%12s\n", "too large");
  }
  std::fflush(stdout);
}

nlohmann::json json(std::vector<PowerRow> const& rows) {
  auto all = nlohmann::json::array();
  for (auto const& row : rows)
    all.push_back({{"divisor", row.power},
                   {"sizes", row.sizes},
                   {"gflops", row.gflops},
                   {"one_device_gflops", row.alone > 0 ? nlohmann::json(row.alone) : nullptr}});
  return all;
}

}  // namespace meshpost::gemm
