// The thesis's stencil program over all ranks of all devices, in one kernel, and beside it as a
// kernel for each stencil with communication by the host.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/enqueue.hpp"
#include "common/files.hpp"
#include "common/study/study.hpp"
#include "initial.hpp"
#include "kernel.hpp"
#include "options.hpp"

namespace {

using namespace meshpost;
using stencil::Grid;
using stencil::Options;

template <class Real>
class Program : public apps::Study {
 public:
  Program(World& world, Options const& options)
      : world_(world),
        grid_(grid_of(world, options)),
        steps_(options.iterations),
        threads_(options.threads),
        on_gpus_(apps::all_on_gpus(world)) {
    u32 const ranks = world.ranks_per_device();
    u32 const rows = grid_.rows / grid_.devices;  // of the smallest part
    bool const in_cache = options.scratch == "auto" && apps::all_in_host_memory(world);
    u32 const groups = options.groups != 0       ? options.groups
                       : in_cache                ? std::clamp(ranks / rows, 1u, options.levels)
                       : ranks >= options.levels ? options.levels
                                                 : 1;
    if (groups > ranks || groups > options.levels)
      apps::refuse("--groups " + std::to_string(groups),
                   "a device has " + std::to_string(ranks) + " ranks, and the grid " +
                       std::to_string(options.levels) + " levels",
                   "give at most the smaller of both");
    kernel_ = {world.window<Real>(
                   std::vector<Extent>(world.size(), {0, stencil::fields * grid_.field_size()}),
                   Tags{1}, "fields"),
               world.window<u32>(1, Tags{stencil::Kernel<Real>::tags}, "counters"),
               grid_,
               groups,
               std::min(ranks / groups, rows),
               ranks,
               steps_,
               in_cache                   ? stencil::Kept::rows
               : options.scratch == "off" ? stencil::Kept::nothing
                                          : stencil::Kept::fields};
    if (options.scratch == "auto" && !fits()) kernel_.kept = stencil::Kept::nothing;
    u64 const size = grid_.row_size();
    initial_.resize(grid_.rows * size);
    for (u64 i = 0; i < initial_.size(); ++i) initial_[i] = stencil::value_at(i, options.seed);
  }

  Grid const& grid() const { return grid_; }
  u32 groups() const { return kernel_.groups; }
  u32 blocks() const { return kernel_.blocks; }
  std::vector<Real> const& initial() const { return initial_; }

  // Everything but the first field begins as NaN, so that a row that did not come shows.
  void reset() override {
    if (world_.process() != 0) return;
    u64 const size = grid_.row_size(), field = grid_.field_size();
    std::vector<Real> all(stencil::fields * field, std::numeric_limits<Real>::quiet_NaN());
    for (u32 device = 0; device < grid_.devices; ++device) {
      long long const begin = std::max(0ll, grid_.first_row(device) - 1ll);
      long long const end = std::min<long long>(grid_.rows, grid_.first_row(device + 1) + 1ll);
      std::copy(initial_.begin() + begin * static_cast<long long>(size),
                initial_.begin() + end * static_cast<long long>(size),
                all.begin() + static_cast<long long>(grid_.offset(device, begin)));
      kernel_.window.write(first_rank(device), 0, all);
    }
  }

  void run_kernel(Launch const& launch) override {
    Launch with = launch;
    if (on_gpus_) with.threads = {apps::threads_of_rank(world_, threads_), 1, 1};
    with.scratch = kernel_.scratch_size();
    world_.run(kernel_, with);
  }

  void step(apps::Exchange& exchange, u32 number) override {
    using stencil::Stage;
    enqueue<Stage::laplacian>(exchange, number);
    exchange.run(messages(stencil::laplacian, true, false));
    enqueue<Stage::fluxes>(exchange, number);
    exchange.run(messages(stencil::flux_y, false, true));
    enqueue<Stage::update>(exchange, number);
    exchange.run(messages(stencil::u1 - number % 2, true, true));
  }
  u32 steps() const override { return steps_; }

  std::vector<std::span<std::byte>> memories() const override {
    std::vector<std::span<std::byte>> all;
    for (u32 d = 0; d < world_.devices().size(); ++d)
      all.push_back(std::as_writable_bytes(
          kernel_.window.part(RankId{world_.first_rank() + d * world_.ranks_per_device()})));
    return all;
  }

  std::vector<std::byte> result() override {
    if (world_.process() != 0) return {};
    u64 const size = grid_.row_size();
    std::vector<Real> rows(grid_.rows * size);
    for (u32 device = 0; device < grid_.devices; ++device) {
      u32 const begin = grid_.first_row(device), end = grid_.first_row(device + 1);
      kernel_.window.read(first_rank(device),
                          steps_ % 2 * grid_.field_size() + grid_.offset(device, begin),
                          std::span(rows).subspan(begin * size, (end - begin) * size));
    }
    auto const bytes = std::as_bytes(std::span(rows));
    return {bytes.begin(), bytes.end()};
  }

  /// In scratch.
  char const* kept() const {
    using stencil::Kept;
    return kernel_.kept == Kept::nothing ? "nothing"
           : kernel_.kept == Kept::rows  ? "rows"
                                         : "fields";
  }

 private:
  /// In shared memory, of which CUDA takes some for each rank; or in the cache of a core.
  bool fits() const {
    constexpr u64 cache = 1 << 20, reserved = 1 << 10;
    if (kernel_.kept == stencil::Kept::rows) return kernel_.scratch_size() <= cache;
    u64 const needed = (kernel_.scratch_size() + reserved) * apps::ranks_per_processor(world_);
    u64 least = ~u64{0};
    for (auto const& device : world_.devices())
      least = std::min(least, apps::shared_memory(*device));
    return apps::in_all(world_, needed <= least);
  }
  static Grid grid_of(World const& world, Options const& options) {
    u32 const devices = world.device_count();
    u64 const rows = options.strong ? options.rows : u64{options.rows} * devices;
    if (rows / devices < 2 || rows > 1u << 30)
      apps::refuse("--rows " + std::to_string(options.rows),
                   "that makes " + std::to_string(rows) + " rows for " + std::to_string(devices) +
                       " devices",
                   "give each at least 2, and all at most 2^30");
    Grid const grid{options.levels, static_cast<u32>(rows), options.columns, devices};
    if (grid.field_size() >= u64{1} << 31)
      apps::refuse("--rows " + std::to_string(options.rows),
                   "a field of a device has " + std::to_string(grid.field_size()) + " points",
                   "choose fewer than 2^31");
    return grid;
  }

  RankId first_rank(u32 device) const { return RankId{device * world_.ranks_per_device()}; }

  template <stencil::Stage stage>
  void enqueue(apps::Exchange& exchange, u32 step) {
    for (u32 d = 0; d < exchange.parts().size(); ++d) {
      auto const& part = exchange.parts()[d];
      u32 const device = exchange.first() + d;
      u32 const begin = grid_.first_row(device), end = grid_.first_row(device + 1);
      auto* const memory = reinterpret_cast<Real*>(part.memory.data());
      apps::enqueue(*part.device, *part.stream, (end - begin) * grid_.row_size() / 4,
                    stencil::OnDevice<Real, stage>{
                        {grid_, stencil::view_of_device(grid_, device, memory, step,
                                                        {begin, end, 0, grid_.levels})}});
    }
  }

  /// The border rows of a field: each device's first one to the device before, its last one to the
  /// device behind.
  std::vector<apps::Message> messages(u32 field, bool firsts, bool lasts) const {
    std::vector<apps::Message> all;
    auto const add = [&](u32 from, u32 to, u32 row) {
      u64 const base = field * grid_.field_size();
      all.push_back({from, to, (base + grid_.offset(from, row)) * sizeof(Real),
                     (base + grid_.offset(to, row)) * sizeof(Real),
                     grid_.row_size() * sizeof(Real)});
    };
    for (u32 device = 0; device + 1 < grid_.devices; ++device) {
      if (firsts) add(device + 1, device, grid_.first_row(device + 1));
      if (lasts) add(device, device + 1, grid_.first_row(device + 1) - 1);
    }
    return all;
  }

  World& world_;
  Grid grid_;
  u32 steps_, threads_;
  bool on_gpus_;
  stencil::Kernel<Real> kernel_;
  std::vector<Real> initial_;  // [row][level][column]
};

template <class Real>
std::vector<Real> values_of(std::vector<std::byte> const& bytes) {
  std::vector<Real> values(bytes.size() / sizeof(Real));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class Real>
int run_with(Options const& options) {
  World world(apps::world_of(options));
  Program<Real> program(world, options);
  auto const comparison = apps::compare(world, program, options);
  if (world.process() != 0) return 0;
  auto const& grid = program.grid();
  // The fields begin as NaN: a row that nobody wrote shows.
  bool const finite = std::ranges::all_of(values_of<Real>(comparison.result),
                                          [](Real value) { return std::isfinite(value); });
  if (!finite) std::printf("result      NOT FINITE\n");
  auto figures = apps::report(world, comparison, options);
  double const points = static_cast<double>(grid.rows) * static_cast<double>(grid.row_size());
  double const rate = points * options.iterations / comparison.kernel.median();
  std::printf(
      "grid        %u rows x %u levels x %u columns in %s; groups of levels: %u, blocks: %u, in "
      "scratch: %s\n",
      grid.rows, grid.levels, grid.columns, options.precision.c_str(), program.groups(),
      program.blocks(), program.kept());
  std::printf("rate        %.4g points/s in one kernel\n", rate);
  std::string const type = options.precision == "double" ? "<f8" : "<f4";
  std::vector<u64> const shape{grid.rows, grid.levels, grid.columns};
  if (!options.output.empty()) apps::write_npy(options.output, type, shape, comparison.result);
  if (!options.initial.empty())
    apps::write_npy(options.initial, type, shape, std::as_bytes(std::span(program.initial())));
  if (!options.json.empty()) {
    figures.update({{"steps", options.iterations},
                    {"shape", shape},
                    {"strong", options.strong},
                    {"groups", program.groups()},
                    {"scratch", program.kept()},
                    {"blocks", program.blocks()},
                    {"precision", options.precision},
                    {"points_per_second", rate}});
    apps::write_figures(options.json, figures);
  }
  return comparison.identical && finite ? 0 : 1;
}

}  // namespace

int stencil::run(Options const& options) {
  static_assert(Kernel<float>::max_threads == Options::most_threads);
  return options.precision == "double" ? run_with<double>(options) : run_with<float>(options);
}
