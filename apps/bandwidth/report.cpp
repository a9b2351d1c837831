#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/figures.hpp"

namespace bandwidth {

using namespace meshpost;

namespace {

std::string text_of(char const* form, double value) {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

Result const* find(std::vector<Result> const& results, std::string const& variant,
                   Place const& from, Place const& to, Bytes size) {
  auto const at = std::ranges::find_if(results, [&](Result const& one) {
    return one.from == from && one.to == to && one.variant == variant && one.size == size;
  });
  return at == results.end() ? nullptr : &*at;
}

void print_cells(Plan const& plan, std::string const& title,
                 std::function<std::string(Place const&, Place const&)> const& cell) {
  int width = 6;
  for (auto const& place : plan.places)
    width = std::max(width, static_cast<int>(place.name().size()));
  std::printf("\n%s, from the row's place to the column's\n%*s", title.c_str(), width, "");
  for (auto const& to : plan.places) std::printf(" %*s", width, to.name().c_str());
  for (auto const& from : plan.places) {
    std::printf("\n%-*s", width, from.name().c_str());
    for (auto const& to : plan.places) std::printf(" %*s", width, cell(from, to).c_str());
  }
  std::printf("\n");
}

// Of absolute values, in percent.
void print_summary(std::vector<double> all) {
  if (all.empty()) return;
  std::ranges::sort(all);
  std::printf("median %.0f %%, largest %.0f %%\n", all[all.size() / 2], all.back());
}

void print_controls(std::vector<double> const& controls) {
  if (controls.empty()) return;
  auto const close =
      std::ranges::count_if(controls, [](double percent) { return percent < control_limit; });
  std::printf("[controls]: peer access can't help; %td of %zu are less than %.0f %% apart", close,
              controls.size(), control_limit);
  if (close < std::ssize(controls))
    std::printf(
        ", one is %.0f %%: the measurement was disturbed; run nothing else, or raise --repetitions",
        std::ranges::max(controls));
  std::printf("\n");
}

}  // namespace

std::string size_name(u64 bytes) {
  char const* unit = "B";
  for (char const* const larger : {"KiB", "MiB", "GiB"})
    if (bytes >= 1024 && bytes % 1024 == 0) bytes /= 1024, unit = larger;
  return std::to_string(bytes) + " " + unit;
}

void print_matrix(Plan const& plan, std::vector<Result> const& results, Variant const& variant,
                  Bytes size) {
  bool const small = size < (u64{1} << 20);
  auto const title = variant.name + " (" + variant.meaning + "), " + size_name(size) + ": " +
                     (small ? "us" : "GB/s");
  print_cells(plan, title, [&](Place const& from, Place const& to) -> std::string {
    auto const* const one = find(results, variant.name, from, to, size);
    if (!one) return "-";
    if (!one->problem.empty()) return "FAILED";
    return small ? text_of("%.2f", one->seconds * 1e6) : text_of("%.1f", one->rate() * 1e-9);
  });
}

std::optional<double> percent_longer(std::vector<Result> const& results,
                                     Comparison const& comparison, Place const& from,
                                     Place const& to, Bytes size) {
  auto const* const of = find(results, comparison.of, from, to, size);
  auto const* const with = find(results, comparison.with, from, to, size);
  if (!of || !with || !of->problem.empty() || !with->problem.empty()) return std::nullopt;
  if (!(of->seconds > 0) || !(with->seconds > 0)) return std::nullopt;
  return 100 * (of->seconds / with->seconds - 1);
}

void print_comparison(Plan const& plan, std::vector<Result> const& results,
                      Comparison const& comparison) {
  for (auto const size : plan.sizes) {
    std::vector<double> all, controls;
    print_cells(plan, comparison.title + ", " + size_name(size) + ": %",
                [&](Place const& from, Place const& to) -> std::string {
                  auto const percent = percent_longer(results, comparison, from, to, size);
                  if (!percent) return "-";
                  bool const control = comparison.peer_access && !peer_access_helps(from, to);
                  (control ? controls : all).push_back(std::abs(*percent));
                  return text_of(control ? "[%+.1f]" : "%+.0f", *percent);
                });
    print_summary(all);
    print_controls(controls);
  }
}

void print_all(Plan const& plan, std::vector<Result> const& results) {
  for (auto const size : plan.sizes)
    for (auto const& variant : plan.variants) print_matrix(plan, results, variant, size);
  for (auto const& one : plan.comparisons) print_comparison(plan, results, one);
}

u64 print_problems(std::vector<Result> const& results) {
  u64 failed = 0;
  for (auto const& one : results) {
    if (one.problem.empty()) continue;
    ++failed;
    std::fprintf(stderr, "bandwidth: %s from %s to %s, %s: %s\n", one.variant.c_str(),
                 one.from.name().c_str(), one.to.name().c_str(), size_name(one.size).c_str(),
                 one.problem.c_str());
  }
  return failed;
}

namespace {

nlohmann::json controls_of(Plan const& plan, Comparison const& comparison) {
  auto pairs = nlohmann::json::array();
  for (auto const& from : plan.places)
    for (auto const& to : plan.places)
      if (comparison.peer_access && !peer_access_helps(from, to))
        pairs.push_back(nlohmann::json::array({from.name(), to.name()}));
  return pairs;
}

}  // namespace

void write_json(std::string const& path, Plan const& plan, std::vector<Result> const& results) {
  nlohmann::json all = {{"fingerprint", plan.fingerprint},
                        {"repetitions", plan.repetitions},
                        {"seed", plan.seed},
                        {"cpu_nodes", plan.cpu_nodes},
                        {"places", nlohmann::json::array()},
                        {"variants", nlohmann::json::object()},
                        {"comparisons", nlohmann::json::array()},
                        {"results", nlohmann::json::array()}};
  for (auto const& place : plan.places) all["places"].push_back(place.name());
  for (auto const& variant : plan.variants) all["variants"][variant.name] = variant.meaning;
  for (auto const& one : plan.comparisons)
    all["comparisons"].push_back({{"title", one.title},
                                  {"of", one.of},
                                  {"with", one.with},
                                  {"controls", controls_of(plan, one)}});
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
  apps::write_figures(path, all);
}

}  // namespace bandwidth
