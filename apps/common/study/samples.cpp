#include "samples.hpp"

#include <algorithm>
#include <cmath>

namespace meshpost::apps {
namespace {

// The largest k for which the k-th smallest and the k-th largest of n values, counted from 0,
// enclose the median with a probability of at least 95 %. Each value is below the median with
// probability 1/2. So the interval misses it with 2 P(at most k of n are below).
std::size_t rank_of_bound(std::size_t n) {
  double exactly = std::pow(0.5, static_cast<double>(n)), at_most = exactly;  // 0 below
  std::size_t k = 0;
  for (;; ++k) {
    exactly *= static_cast<double>(n - k) / static_cast<double>(k + 1);  // k + 1 below
    at_most += exactly;
    if (2 * at_most > 0.05) return k;  // also if not even k = 0 is enough
  }
}

}  // namespace

std::vector<double> Samples::sorted() const {
  auto all = values_;
  std::ranges::sort(all);
  return all;
}

double Samples::median() const {
  auto const all = sorted();
  if (all.empty()) return 0;
  auto const half = all.size() / 2;
  return all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
}

double Samples::lower() const {
  auto const all = sorted();
  return all.empty() ? 0 : all[rank_of_bound(all.size())];
}

double Samples::upper() const {
  auto const all = sorted();
  return all.empty() ? 0 : all[all.size() - 1 - rank_of_bound(all.size())];
}

nlohmann::json json_of(Samples const& samples) {
  return {{"median", samples.median()},
          {"lower", samples.lower()},
          {"upper", samples.upper()},
          {"samples", samples.values()}};
}

}  // namespace meshpost::apps
