#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace meshpost::apps {

/// The times of repeated runs, and their median with its confidence interval.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  double median() const;
  /// The bounds of an interval that holds the true median with at least 95 %, whatever the
  /// distribution: two of the sorted values, chosen by the binomial distribution. With fewer than
  /// six values, all of them.
  double lower() const;
  double upper() const;
  std::vector<double> const& values() const { return values_; }

 private:
  std::vector<double> sorted() const;
  std::vector<double> values_;
};

/// {"median", "lower", "upper", "samples"}
nlohmann::json json_of(Samples const& samples);

}  // namespace meshpost::apps
