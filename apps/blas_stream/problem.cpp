#include "problem.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <thread>

#include "common/random.hpp"
#include "meshpost/device/backend.hpp"

namespace blas_stream {
namespace {

using meshpost::blas::Type;

// Numbers from -1 to 1 that depend on their place alone (splitmix64).
double number_at(u64 seed, u64 place) {
  using meshpost::apps::golden, meshpost::apps::mixed;
  u64 const bits = mixed(seed * golden + place * 0xbf58476d1ce4e5b9ull + 0x94d049bb133111ebull);
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1.0;
}

}  // namespace

Factors make_factors(u64 m, u64 seed) {
  Factors factors{std::vector<double>(m * m), std::vector<double>(m * m)};
  // The discrete Hartley transform is orthogonal for every m (Bracewell 1983); rows and columns get
  // signs.
  std::vector<double> wave(m);
  for (u64 i = 0; i < m; ++i) {
    double const angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(m);
    wave[i] = (std::cos(angle) + std::sin(angle)) / std::sqrt(static_cast<double>(m));
  }
  auto const sign = [&](u64 which, u64 i) { return number_at(seed + which, i) < 0 ? -1.0 : 1.0; };
  for (u64 j = 0; j < m; ++j)
    for (u64 i = 0; i < m; ++i) {
      double const p = sign(2, i) * sign(3, j) * wave[i * j % m];
      factors.l[j * m + i] = Factors::l_scale * p;
      factors.k[j * m + i] = Factors::k_scale * p;
    }
  return factors;
}

double energy(double const* r, double const* q, u64 m) {
  constexpr double uu = Factors::l_scale / 2, vv = Factors::k_scale / 2, uv = Factors::k_scale / 4;
  double sum = 0;
  for (u64 i = 0; i < m; ++i) {
    double const u = (q[i] - r[i]) / 2, v = (q[i] + u) / 2;
    sum += uu * u * u + vv * v * v - uv * u * v;
  }
  return sum;
}

void first_column(double* out, u64 m, u64 column, u32 which, u64 seed) {
  for (u64 i = 0; i < m; ++i) out[i] = number_at(seed + which, column * m + i);
}

void put_step(meshpost::blas::Blas& blas, u64 m, u64 columns, double const* l, double const* k,
              double* r, double* q, double* r_out, double* q_out) {
  auto constexpr type = Type::float64;
  u64 const count = m * columns;
  blas.axpby(type, count, 0.5, q, -0.5, r);
  blas.axpby(type, count, 0.5, r, 0.5, q);
  blas.gemm(type, {m, columns, m}, 1.0, {l, m}, {r, m}, 0.0, {r_out, m});
  blas.gemm(type, {m, columns, m}, 1.0, {k, m}, {q, m}, 0.0, {q_out, m});
  blas.axpby(type, count, 1.0, q_out, 1.0, r_out);
  blas.axpby(type, count, 1.0, r_out, -1.0, q_out);
}

PlainRun::PlainRun(Size size, std::vector<u64> columns, Factors const& factors, u64 seed)
    : size_(size),
      columns_(std::move(columns)),
      factors_(factors),
      r_(size.m * columns_.size()),
      q_(r_.size()),
      r_next_(r_.size()),
      q_next_(r_.size()),
      stream_(meshpost::backend("cpu").open(0)->make_stream()) {
  for (u64 i = 0; i < columns_.size(); ++i) {
    first_column(r_.data() + i * size.m, size.m, columns_[i], 0, seed);
    first_column(q_.data() + i * size.m, size.m, columns_[i], 1, seed);
  }
}

double PlainRun::iterate() {
  auto const begin = std::chrono::steady_clock::now();
  meshpost::blas::Blas blas(meshpost::backend("cpu").open(0), *stream_);
  put_step(blas, size_.m, columns_.size(), factors_.l.data(), factors_.k.data(), r_.data(),
           q_.data(), r_next_.data(), q_next_.data());
  stream_->synchronize();
  r_.swap(r_next_);
  q_.swap(q_next_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double largest_error(PlainRun const& plain, Size size, double const* r, double const* q) {
  double error = 0, largest = 0;
  for (u64 i = 0; i < plain.columns().size(); ++i)
    for (u64 j = 0; j < size.m; ++j) {
      u64 const place = plain.columns()[i] * size.m + j;
      largest = std::max({largest, std::abs(plain.r(i)[j]), std::abs(plain.q(i)[j])});
      double const here = std::abs(plain.r(i)[j] - r[place]) + std::abs(plain.q(i)[j] - q[place]);
      if (!(here <= error)) error = here;  // a NaN too
      if (std::isnan(here)) return std::numeric_limits<double>::infinity();
    }
  return largest > 0 ? error / largest : std::numeric_limits<double>::infinity();
}

double error_bound(u64 m, u32 iterations) {
  return 16.0 * std::sqrt(static_cast<double>(m)) * (1 + iterations) *
         std::numeric_limits<double>::epsilon();
}

}  // namespace blas_stream
