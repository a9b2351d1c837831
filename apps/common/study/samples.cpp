#include "samples.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/median.hpp"

namespace meshpost::apps {
namespace {

// The largest k for which the k-th smallest and the k-th largest of n values, counted from 0,
// enclose the median with a probability of at least 95 %. Each value is below the median with
// probability 1/2. So the interval misses it with 2 P(at most k of n are below).
std::size_t rank_of_bound(std::size_t n) {
  double const count = static_cast<double>(n);
  // Of exactly k below. By logarithms, because 2^-n is 0 for large n.
  auto const exactly = [count](double k) {
    return std::exp(std::lgamma(count + 1) - std::lgamma(k + 1) - std::lgamma(count - k + 1) -
                    count * std::log(2.0));
  };
  double at_most = exactly(0);
  std::size_t k = 0;
  for (; k < n / 2; ++k) {
    at_most += exactly(static_cast<double>(k + 1));
    if (2 * at_most > 0.05) break;  // also if not even k = 0 is enough
  }
  return k;
}

}  // namespace

std::vector<double> Samples::sorted() const {
  auto all = values_;
  std::ranges::sort(all);
  return all;
}

double Samples::median() const { return apps::median(values_); }

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
