#include "program.hpp"

#include <limits>

#include "common/study/enqueue.hpp"

namespace spmv {

using namespace meshpost;
using namespace meshpost::apps::sparse;
using apps::enqueue;
using apps::Exchange;

namespace {

Layout layout_of(Problem const& problem) {
  return {(problem.most_rows() + 15) / 16 * 16, problem.square().levels()};
}

bool on_gpus(World const& world) {
  return !world.devices().empty() && world.devices().front()->kind() == "cuda";
}

}  // namespace

Program::Program(World& world, Problem const& problem, u32 products)
    : world_(world),
      n_(problem.n()),
      first_device_(world.first_rank() / world.ranks_per_device()),
      vectors_{problem.vector(0), problem.vector(1)},
      kernel_{world.window<double>(whole_parts(world, layout_of(problem).size()),
                                   Tags{1 + problem.square().levels()}, "vectors"),
              place(world, problem),
              problem.square(),
              layout_of(problem),
              products,
              false} {
  for (u32 k = 0; k < world.devices().size(); ++k)
    matrices_.push_back(kernel_.matrix.of(world, first_device_ + k));
  u64 const kept = kept_bytes(problem.most_shared_rows(), problem.most_shared_entries());
  if (!on_gpus(world)) return;
  launch_.threads = {static_cast<u32>(gpu_threads), 1, 1};
  kernel_.kept = kept <= most_kept_bytes;
  if (kernel_.kept) launch_.scratch = Bytes{kept};
}

// All is poisoned but the vectors that are given: whatever is read must have been written.
void Program::reset() {
  Layout const& layout = kernel_.layout;
  std::vector<double> all(layout.size());
  for (u32 k = 0; k < world_.devices().size(); ++k) {
    u32 const device = first_device_ + k;
    std::ranges::fill(all, std::numeric_limits<double>::quiet_NaN());
    auto const range = block(kernel_.square.column_of(device));
    for (u32 v = 0; v < 2 && kernel_.square.row_of(device) == 0; ++v)
      std::copy(vectors_[v].begin() + range.first, vectors_[v].begin() + range.last,
                all.begin() + static_cast<long>(layout.given(v)));
    kernel_.data.write(first_rank_of(world_, device), 0, std::span<double const>(all));
  }
}

void Program::run_kernel(Launch const& launch) {
  launch_.trace = launch.trace;
  world_.run(kernel_, launch_);
}

double* Program::memory(u32 device) const {
  return kernel_.data.part(first_rank_of(world_, device)).data();
}

std::vector<std::span<std::byte>> Program::memories() const {
  std::vector<std::span<std::byte>> all;
  for (u32 k = 0; k < world_.devices().size(); ++k)
    all.push_back(
        std::as_writable_bytes(kernel_.data.part(first_rank_of(world_, first_device_ + k))));
  return all;
}

void Program::step(Exchange& exchange, u32 number) {
  broadcast(exchange, number);
  multiply(exchange, number);
  reduce(exchange);
  exchange.barrier();
}

void Program::broadcast(Exchange& exchange, u32 number) {
  auto const& [square, layout] = std::tie(kernel_.square, kernel_.layout);
  for (u32 level = 0; level < layout.levels; ++level) {
    messages_.clear();
    for (u32 j = 0; j < square.side; ++j)
      for (u32 i = 0; i < square.side; ++i)
        if (square.sends(i, level))
          messages_.push_back({square.device(i, j), square.device(i + (1u << level), j),
                               layout.vector(i, number) * sizeof(double),
                               layout.b() * sizeof(double), block(j).count() * sizeof(double)});
    exchange.run(messages_);
  }
}

void Program::multiply(Exchange const& exchange, u32 number) const {
  for (u32 k = 0; k < exchange.parts().size(); ++k) {
    auto const& part = exchange.parts()[k];
    u32 const device = first_device_ + k, i = kernel_.square.row_of(device);
    u32 const rows = block(i).count();
    double* const all = memory(device);
    enqueue(*part.device, *part.stream, u64{rows} * lanes_of_plain,
            Multiply{matrices_[k], rows, all + kernel_.layout.vector(i, number),
                     all + kernel_.layout.x()});
  }
}

void Program::reduce(Exchange& exchange) {
  auto const& [square, layout] = std::tie(kernel_.square, kernel_.layout);
  for (u32 level = 0; level < layout.levels; ++level) {
    messages_.clear();
    for (u32 j = 0; j < square.side; ++j)
      for (u32 i = 0; i < square.side && square.gathers(j, level); ++i)
        messages_.push_back({square.device(i, j + (1u << level)), square.device(i, j),
                             layout.x() * sizeof(double), layout.inbox(level) * sizeof(double),
                             block(i).count() * sizeof(double)});
    exchange.run(messages_);
    for (auto const& message : messages_) {
      if (!exchange.is_mine(message.to)) continue;
      auto const& part = exchange.part(message.to);
      u32 const rows = block(square.row_of(message.to)).count();
      double* const all = memory(message.to);
      enqueue(*part.device, *part.stream, rows,
              Add{rows, all + layout.inbox(level), all + layout.x()});
    }
  }
}

std::vector<std::byte> Program::result() {
  if (world_.process() != 0) return {};
  std::vector<double> x(n_);
  for (u32 i = 0; i < kernel_.square.side; ++i) {
    auto const range = block(i);
    kernel_.data.read(first_rank_of(world_, kernel_.square.device(i, 0)), kernel_.layout.x(),
                      std::span(x).subspan(range.first, range.count()));
  }
  auto const bytes = std::as_bytes(std::span(x));
  return {bytes.begin(), bytes.end()};
}

}  // namespace spmv
