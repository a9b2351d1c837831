#include "program.hpp"

namespace power {

using meshpost::Error;
using meshpost::Kind;

// All is poisoned but the first vector and its factor. The other factors are 0: not known yet.
void Program::reset() {
  for (u32 device = first(); device < end(); ++device) {
    auto all = poisoned(layout().size());
    auto const columns = range(square_.column_of(device));
    auto const at = [&](u64 offset) { return all.begin() + static_cast<long>(offset); };
    if (square_.row_of(device) == 0)
      std::copy_n(first_vector_.begin() + columns.first, columns.count(), at(layout().b(0)));
    std::fill(at(layout().factor(0)), all.end(), 0.0);
    *at(layout().factor(0)) = first_factor_;
    data_.write(sparse::first_rank_of(world_, device), 0, std::span<double const>(all));
  }
}

void Program::run_kernel(meshpost::Launch const& launch) { world_.run(kernel_, launched(launch)); }

void Program::step(Exchange& exchange, u32 number) {
  spread(exchange, number);
  multiply(exchange, number);
  add_along_rows(exchange, layout().x(), layout().inbox(), layout().stride);
  measure(exchange, number);
}

// Step 1. The factor goes from device 0 to all others at once, beside the first level.
void Program::spread(Exchange& exchange, u32 number) {
  for (u32 device = 1; device < square_.devices() && number > 0; ++device)
    send(0, device, layout().factor(number), layout().factor(number), 1);
  for (u32 level = 0; level < square_.levels(); ++level) {
    send_level_down(level, [&](u32) { return layout().b(number); }, layout().b(number));
    run(exchange);
  }
}

// Steps 2 and 3.
void Program::multiply(Exchange& exchange, u32 number) {
  for (u32 device = first(); device < end(); ++device) {
    u32 const rows = range(square_.row_of(device)).count();
    double* const all = memory(device);
    put(exchange, device, u64{rows} * sparse::lanes_of_plain,
        Multiply{block(device), rows, all + layout().b(number), all + layout().factor(number),
                 all + layout().x()});
  }
}

// Steps 5 and 6. The sums of blocks go beside the vectors.
void Program::measure(Exchange& exchange, u32 number) {
  bool const last = number + 1 == steps();
  for (u32 i = 0; i < square_.side; ++i) {
    u32 const device = square_.device(i, 0), rows = range(i).count();
    if (i > 0 && !last)
      send(device, square_.device(0, i), layout().x(), layout().b(number + 1), rows);
    if (i > 0) send(device, 0, layout().blocks() + i, layout().blocks() + i, 1);
    if (!exchange.is_mine(device)) continue;
    double* const all = memory(device);
    bool const alone = square_.side == 1;
    put(exchange, device, rows,
        Squares{rows, all + layout().x(), all + layout().groups(0),
                i == 0 ? all + layout().b(number + 1) : nullptr});
    put(exchange, device, partials,
        Sum{groups_of(rows), all + layout().groups(0), all + layout().blocks() + i,
            alone ? all + layout().factor(number + 1) : nullptr});
  }
  run(exchange);
  if (square_.side > 1 && exchange.is_mine(0))
    put(exchange, 0, 1,
        Factor{square_.side, memory(0) + layout().blocks(),
               memory(0) + layout().factor(number + 1)});
}

std::vector<std::byte> Program::result() {
  std::vector<double> factors(steps());
  data_.read(meshpost::RankId{0}, layout().factor(1), std::span(factors));
  auto const bad = std::ranges::find_if_not(factors, [](double f) { return std::isfinite(f); });
  failed_.reset();
  if (bad != factors.end()) failed_ = static_cast<u32>(bad - factors.begin());
  if (world_.process() != 0) return {};
  auto all = read_column(layout().x());
  for (double& element : all) element *= factors.back();
  for (double const factor : factors) all.push_back(1 / factor);
  auto const bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

void Program::check_lengths() const {
  if (!failed_) return;
  throw Error(Kind::bad_argument, "iteration " + std::to_string(*failed_),
              "the sum of the squares of A b is 0 or no finite number, so it can't be normalised",
              "take a matrix with an eigenvalue other than 0, and values from 1e-150 to 1e150");
}

}  // namespace power
