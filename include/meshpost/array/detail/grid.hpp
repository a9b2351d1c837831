#pragma once
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "meshpost/array/grid.hpp"

namespace meshpost {

template <class T>
Grid<T>::Grid(World& world, GridOptions const& options)
    : world_(&world), layout_(detail::GridLayout::make(world, options)) {
  std::string const& name = options.name;
  memory_.pitch = layout_.pitch();
  memory_.fields = options.fields, memory_.components = options.components;
  auto const shared = [&](u64 count) { return shared_parts(world, count); };
  try {
    memory_.values = world.window<T>(shared(memory_.pitch * memory_.fields), Tags{0}, name);
    memory_.table =
        world.window<u64>(shared(layout_.table_words(world)), Tags{0}, name + ", table");
    memory_.marks =
        world.window<detail::GridMark>(shared(world.ranks_per_device()), Tags{0}, name + ", marks");
    memory_.exchange = make_exchange<T>(world, layout_.plan(), name);
    detail::grid_together(world, "make grid '" + name + "'", [&] {
      for (u32 part = first_part(); part < first_part() + part_count(); ++part) {
        auto const table = layout_.table(world, part);
        counts_.emplace_back(table);
        memory_.table.write(rank_of(part), 0, std::span<u64 const>(table));
        // All bits set: NaN, so that what nobody has filled shows. (Other types: some value.)
        auto const values = memory_.values.part(rank_of(part));
        if constexpr (detail::may_be_no_number<T>)
          world.devices()[part - first_part()]->fill(values.data(), 0xff,
                                                     Bytes{values.size_bytes()});
      }
    });
  } catch (...) {  // in all processes alike
    free();
    throw;
  }
}

template <class T>
void Grid<T>::free() {
  if (memory_.values.info().number != 0) check_alive("Grid::free");
  if (streams_) streams_->free(), streams_.reset();
  free_exchange(*world_, memory_.exchange);
  auto const end = [&](auto& window) {
    if (window.info().number != 0) world_->free(window);
    window = {};
  };
  end(memory_.values), end(memory_.table), end(memory_.marks);
  memory_.exchange = {};
}

template <class T>
template <class Value>
void Grid<T>::fill(u32 field, Value&& value) {
  check_alive("Grid::fill");
  layout_.check_field(field, "Grid::fill");
  for (u32 part = first_part(); part < first_part() + part_count(); ++part) {
    Box const frame = layout_.frame(part), own = box(part);
    u64 const plane = frame.extent(0) * frame.extent(1);
    std::vector<T> values(plane);
    // A plane at a time, so that the host needs little memory.
    for (u32 component = 0; component < memory_.components; ++component)
      for (i64 z = frame.begin.z; z < frame.end.z; ++z) {
        u64 i = 0;
        for (i64 y = frame.begin.y; y < frame.end.y; ++y)
          for (i64 x = frame.begin.x; x < frame.end.x; ++x) {
            Cell const cell{x, y, z};
            bool const filled = own.contains(cell) || layout_.is_fixed(cell);
            if constexpr (requires { value(cell, component); })
              values[i++] =
                  filled ? T(value(cell, component)) : std::numeric_limits<T>::quiet_NaN();
            else values[i++] = filled ? T(value(cell)) : std::numeric_limits<T>::quiet_NaN();
          }
        memory_.values.write(rank_of(part),
                             field * memory_.pitch + component * frame.cells() +
                                 static_cast<u64>(z - frame.begin.z) * plane,
                             std::span<T const>(values));
      }
  }
}

template <class T>
std::vector<T> Grid<T>::read(u32 field, u32 part) const {
  check_alive("Grid::read");
  layout_.check_field(field, "Grid::read");
  Box const own = box(part);
  if (own.empty()) return {};
  Box const frame = layout_.frame(part);
  std::vector<T> values(frame.cells()), cells;
  cells.reserve(own.cells() * memory_.components);
  for (u32 component = 0; component < memory_.components; ++component) {
    memory_.values.read(rank_of(part), field * memory_.pitch + component * frame.cells(),
                        std::span<T>(values));
    for (i64 z = own.begin.z; z < own.end.z; ++z)
      for (i64 y = own.begin.y; y < own.end.y; ++y) {
        auto const row = values.begin() + static_cast<i64>(frame.place_of({own.begin.x, y, z}));
        cells.insert(cells.end(), row, row + static_cast<i64>(own.extent(0)));
      }
  }
  return cells;
}

template <class T>
void Grid<T>::write(u32 field, u32 part, std::span<T const> values) {
  check_alive("Grid::write");
  layout_.check_write(field, part, values.size());
  Box const own = box(part);
  if (own.empty()) return;
  Box const frame = layout_.frame(part);
  std::vector<T> all(frame.cells());
  auto from = values.begin();
  for (u32 component = 0; component < memory_.components; ++component) {
    u64 const begin = field * memory_.pitch + component * frame.cells();
    memory_.values.read(rank_of(part), begin, std::span<T>(all));  // the halo stays
    for (i64 z = own.begin.z; z < own.end.z; ++z)
      for (i64 y = own.begin.y; y < own.end.y; ++y) {
        std::copy_n(from, own.extent(0),
                    all.begin() + static_cast<i64>(frame.place_of({own.begin.x, y, z})));
        from += static_cast<i64>(own.extent(0));
      }
    memory_.values.write(rank_of(part), begin, std::span<T const>(all));
  }
}

template <class T>
template <class Scheme, bool nvcc>
GridResult Grid<T>::run(Scheme const& scheme, u64 steps, GridRun const& options) {
  static_assert(detail::stages_of<Scheme>() > 0, "a step has at least one stage");
  static_assert(detail::reads_as_it_should<Scheme>,
                "reads() of the scheme must be: u32 reads(GridTime at) const");
  static_assert(
      !requires { &Scheme::mirrored; } || detail::mirrors<Scheme, T>,
      "mirrored() of the scheme must be: T mirrored(T value, u32 component, u32 axes) "
      "const");
  check_alive("Grid::run");
  GridResult result;
  u64 const first = options.first_step.value_or(next_step_);
  if (options.execution == GridExecution::one_kernel) {
    using Kernel = detail::GridKernel<T, Scheme>;
    Kernel const kernel{scheme, memory_, first, steps, options.check_every, options.measures};
    result.seconds = world_->template run<Kernel, nvcc>(kernel, options.launch).seconds;
    // The run has ended on all devices, so each process finds the same.
    std::vector<std::vector<detail::GridMark>> marks;
    bool const looks = options.check_every != 0 || options.measures;
    for (u32 part = 0; looks && part < boxes().parts(); ++part)
      marks.push_back(memory_.marks.read(rank_of(part)));
    layout_.check_marks(0, marks, options.check_every);
    for (auto const& of_part : marks)
      if (options.measures) result.busy.push_back(1e-9 * static_cast<double>(of_part[0].busy));
  } else {
    if (!streams_) streams_ = std::make_unique<detail::GridStreams<T>>(*world_, layout_);
    auto const begin = std::chrono::steady_clock::now();
    try {
      streams_->template run<Scheme, nvcc>(scheme, memory_, counts_, {first, first + steps},
                                           options);
    } catch (...) {  // in all processes alike
      auto const failed = std::exchange(streams_, nullptr);
      try {
        failed->free();
      } catch (Error const&) {  // NOLINT(bugprone-empty-catch): the first error is the one to know
      }
      throw;
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  next_step_ = first + steps;
  return result;
}

template <class T, class Scheme, class Fill, bool nvcc>
std::vector<double> measured_shares(World& world, GridOptions options, Scheme const& scheme,
                                    Fill&& fill, u64 steps, Launch const& launch) {
  options.shares.clear();
  Grid<T> grid(world, options);
  try {
    fill(grid);
    grid.template run<Scheme, nvcc>(scheme, 2, {.launch = launch});
    auto const busy =
        grid.template run<Scheme, nvcc>(scheme, steps, {.measures = true, .launch = launch}).busy;
    std::vector<double> shares;
    for (u32 part = 0; part < busy.size(); ++part)
      shares.push_back(static_cast<double>(grid.box(part).cells()) / std::max(busy[part], 1e-9));
    grid.free();
    return shares;
  } catch (...) {
    grid.free();
    throw;
  }
}

}  // namespace meshpost
