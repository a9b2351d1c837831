#pragma once
#include <vector>

#include "common/study/study.hpp"
#include "kernel.hpp"

namespace spmv {

/// Both versions of the repeated product, over one World.
class Program : public meshpost::apps::Study {
 public:
  Program(meshpost::World& world, meshpost::apps::sparse::Problem const& problem, u32 products);

  void reset() override;
  void run_kernel(meshpost::Launch const& launch) override;
  void step(meshpost::apps::Exchange& exchange, u32 number) override;
  u32 steps() const override { return kernel_.products; }
  std::vector<std::span<std::byte>> memories() const override;
  std::vector<std::byte> result() override;

 private:
  void broadcast(meshpost::apps::Exchange& exchange, u32 number);
  void multiply(meshpost::apps::Exchange const& exchange, u32 number) const;
  void reduce(meshpost::apps::Exchange& exchange);
  Range block(u32 number) const { return kernel_.square.range(number, n_); }
  double* memory(u32 device) const;

  meshpost::World& world_;
  u32 n_, first_device_;
  std::vector<double> vectors_[2];
  Kernel kernel_;
  meshpost::Launch launch_;
  std::vector<Rows> matrices_;  // of this process's devices
  std::vector<meshpost::apps::Message> messages_;
};

}  // namespace spmv
