#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "common/bf16.hpp"

namespace meshpost::gemm {
namespace {

// fill() stores the element like this; only the GPU rounds to tf32.
double stored(blas::Type type, double value) {
  switch (type) {
    case blas::Type::float64: return value;
    case blas::Type::bf16: return blas::Bf16(static_cast<float>(value));
    default: return static_cast<float>(value);
  }
}

double larger(double one, double other) {  // NaN, if one of them is NaN
  return std::isnan(one) || one > other ? one : other;
}

// sum[i] = the sum over columns j of column(j)[i] * factor[j]; columns are dealt to members in
// turn.
template <class Column>
std::vector<double> times(u64 rows, std::span<double const> factor, blas::Team& team,
                          Column const& column) {
  std::vector<std::vector<double>> sums(team.size(), std::vector<double>(rows));
  team.run([&](u32 member) {
    for (u64 j = member; j < factor.size(); j += team.size())
      for (u64 i = 0; i < rows; ++i) sums[member][i] += column(i, j) * factor[j];
  });
  for (u32 member = 1; member < team.size(); ++member)
    for (u64 i = 0; i < rows; ++i) sums[0][i] += sums[member][i];
  return std::move(sums[0]);
}

}  // namespace

double tolerance(blas::Type type, u64 k, u64 steps, u32 products) {
  auto const terms = static_cast<double>(k), root = std::sqrt(terms);
  double const sums = type == blas::Type::float64   ? 0x1p-53
                      : type == blas::Type::float32 ? 0x1p-24
                                                    : 0x1p-22;
  double bound = 8 * (terms + 8) * sums;
  if (type == blas::Type::tf32) bound += 4 * root * 0x1p-11;
  if (type == blas::Type::bf16) bound += static_cast<double>(steps + 1) * 2 * root * 0x1p-9;
  return bound * products * std::pow(terms / 3, (products - 1) / 2.0);
}

Verdict compare(Distributed const& one, Distributed const& other, u64 k, u64 steps,
                blas::Team& team) {
  Verdict verdict{0, 2 * tolerance(one.type(), k, steps)};
  u64 const width = columns_at_once(one.rows());
  for (u64 first = 0; first < one.columns(); first += width) {
    Range const columns{first, std::min(width, one.columns() - first)};
    auto const left = one.read(columns, team), right = other.read(columns, team);
    for (u64 i = 0; i < left.size(); ++i)
      verdict.error = larger(std::abs(left[i] - right[i]), verdict.error);
  }
  return verdict;
}

std::vector<double> random_signs(u64 a_seed, u64 b_seed, u32 round, u64 count) {
  // Not a_seed ^ b_seed: all pairs of seeds that differ in the same bit would give the same.
  u64 const seed = (a_seed + 0x632be59bd9b4e019) * 0x9e3779b97f4a7c15 + b_seed;
  std::vector<double> signs(count);
  for (u64 j = 0; j < count; ++j) signs[j] = element(seed, round, j) < 0 ? -1 : 1;
  return signs;
}

Verdict freivalds(Distributed const& c, u64 k, u64 a_seed, u64 b_seed, u64 steps, u32 rounds,
                  blas::Team& team, u32 products) {
  auto const type = c.type();
  // The errors of a row's elements add up with random signs.
  Verdict verdict{
      0, std::sqrt(static_cast<double>(c.columns())) * tolerance(type, k, steps, products)};
  for (u32 round = 0; round < rounds; ++round) {
    auto const signs = random_signs(a_seed, b_seed, round, c.columns());
    auto bx = signs;
    for (u32 product = 0; product < products; ++product)
      bx = times(k, bx, team, [&](u64 i, u64 j) { return stored(type, element(b_seed, i, j)); });
    auto const abx = times(c.rows(), bx, team,
                           [&](u64 i, u64 j) { return stored(type, element(a_seed, i, j)); });
    std::vector<double> cx(c.rows());
    u64 const width = columns_at_once(c.rows());
    for (u64 first = 0; first < c.columns(); first += width) {
      Range const columns{first, std::min(width, c.columns() - first)};
      auto const part = c.read(columns, team);
      auto const sum = times(c.rows(), std::span(signs).subspan(first, columns.count), team,
                             [&](u64 i, u64 j) { return part[j * c.rows() + i]; });
      for (u64 i = 0; i < cx.size(); ++i) cx[i] += sum[i];
    }
    for (u64 i = 0; i < cx.size(); ++i)
      verdict.error = larger(std::abs(cx[i] - abx[i]), verdict.error);
  }
  return verdict;
}

}  // namespace meshpost::gemm
