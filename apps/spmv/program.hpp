#pragma once
#include <algorithm>

#include "common/sparse/square_study.hpp"
#include "kernel.hpp"

namespace spmv {

using meshpost::apps::Exchange;

/// Both versions of the repeated product, over one World.
class Program : public sparse::SquareStudy {
 public:
  Program(meshpost::World& world, sparse::Problem const& problem, u32 products)
      : SquareStudy(world, problem, layout_of(problem).size(),
                    meshpost::Tags{Kernel::first_sum + problem.square().levels()}, 0),
        vectors_{problem.vector(0), problem.vector(1)},
        kernel_{data_, matrix_, square_, layout_of(problem), products, kept_} {}

  void reset() override {
    for (u32 device = first(); device < end(); ++device) {
      auto all = poisoned(layout().size());
      auto const columns = range(square_.column_of(device));
      for (u32 v = 0; v < 2 && square_.row_of(device) == 0; ++v)
        std::copy_n(vectors_[v].begin() + columns.first, columns.count(),
                    all.begin() + static_cast<long>(layout().given(v)));
      data_.write(sparse::first_rank_of(world_, device), 0, std::span<double const>(all));
    }
  }

  void run_kernel(meshpost::Launch const& launch) override {
    world_.run(kernel_, launched(launch));
  }

  void step(Exchange& exchange, u32 number) override {
    for (u32 level = 0; level < square_.levels(); ++level) {
      send_level_down(level, [&](u32 i) { return layout().vector(i, number); }, layout().b());
      run(exchange);
    }
    for (u32 device = first(); device < end(); ++device) {
      u32 const i = square_.row_of(device), rows = range(i).count();
      double* const all = memory(device);
      put(exchange, device, u64{rows} * sparse::lanes_of_plain,
          Multiply{block(device), rows, all + layout().vector(i, number), all + layout().x()});
    }
    add_along_rows(exchange, layout().x(), layout().inbox(), layout().stride);
    if (square_.side > 1) exchange.barrier();  // a single device's stream keeps the order
  }

  u32 steps() const override { return kernel_.products; }

  std::vector<std::byte> result() override {
    if (world_.process() != 0) return {};
    auto const x = read_column(layout().x());
    auto const bytes = std::as_bytes(std::span(x));
    return {bytes.begin(), bytes.end()};
  }

 private:
  static Layout layout_of(sparse::Problem const& problem) {
    return {(problem.most_rows() + 15) / 16 * 16, problem.square().levels()};
  }
  Layout const& layout() const { return kernel_.layout; }

  std::vector<double> vectors_[2];
  Kernel kernel_;
};

}  // namespace spmv
