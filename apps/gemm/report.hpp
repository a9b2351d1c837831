#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "measure.hpp"

// Results as text and as JSON.

namespace meshpost::gemm {

void print(Figures const& figures, u32 devices);
nlohmann::json json(Figures const& figures, u32 devices);

/// Rates of N x N matrices in GFlop/s. n = 0: they are not square. alone = 0: not measured.
struct Rate {
  u64 n = 0;
  double gflops = 0, alone = 0;
};
Rate rate(Figures const& figures);

/// Medians of the sizes that have `power` as their largest power of two; 32: or a larger one.
struct PowerRow {
  u32 power = 1;
  std::size_t sizes = 0;
  double gflops = 0, alone = 0;
};
/// Of the sizes that have a neighbour N + 1 or N - 1 among `rates`. Other sizes differ too much for
/// a median.
std::vector<PowerRow> by_power_of_two(std::vector<Rate> rates);
void print(std::vector<PowerRow> const& rows);
nlohmann::json json(std::vector<PowerRow> const& rows);

}  // namespace meshpost::gemm
