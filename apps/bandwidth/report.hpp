#pragma once
#include "measure.hpp"

// The results as text and as JSON.

namespace bandwidth {

/// "64 MiB".
std::string size_name(meshpost::u64 bytes);

/// GB/s, or microseconds of small copies, of one variant and size.
void print_matrix(Plan const& plan, std::vector<Result> const& results, Variant const& variant,
                  meshpost::Bytes size);

/// How much longer a copy takes by `comparison.of` than by `comparison.with`, in percent. Nothing
/// unless both have succeeded.
std::optional<double> percent_longer(std::vector<Result> const& results,
                                     Comparison const& comparison, meshpost::Place const& from,
                                     meshpost::Place const& to, meshpost::Bytes size);

/// Controls that are this many percent apart, or more, show that the measurement was disturbed.
inline constexpr double control_limit = 5;

/// A matrix of that for each size, and the median and the largest of their absolute values.
/// Controls are in brackets. They are counted apart, with those that are too far apart.
void print_comparison(Plan const& plan, std::vector<Result> const& results,
                      Comparison const& comparison);

/// The matrices of all variants and sizes, then the comparisons.
void print_all(Plan const& plan, std::vector<Result> const& results);

/// Prints each problem to standard error. Returns their number.
meshpost::u64 print_problems(std::vector<Result> const& results);

/// \throws std::runtime_error if the file can't be written
void write_json(std::string const& path, Plan const& plan, std::vector<Result> const& results);

}  // namespace bandwidth
