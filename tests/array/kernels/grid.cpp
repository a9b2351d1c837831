// Grids: the same as without a cut, to the bit, for any extents, cuts, halos and boundaries.
#include <meshpost/array/grid.hpp>
#include <meshpost/meshpost.hpp>

#include <random>

#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

/// Two stages a step, of numbers without rounding. The first one reads the halo of field 0 and
/// writes field 1. The second one reads the halo of field 1, and writes field 0 where it reads it.
struct Hashes {
  static constexpr u32 stages = 2;
  Sides reach;
  bool corners;
  u32 components;

  MESHPOST_FN u32 reads(GridTime at) const { return at.stage; }
  MESHPOST_FN u64 mirrored(u64 value, u32 component, u32 axes) const {
    return value * 3 + component + axes;
  }
  /// `read(x, y, z, component)`: a value of the field whose halo is read.
  template <class Read>
  MESHPOST_FN u64 next(Read const& read, u64 here, Cell cell, u32 component, GridTime at) const {
    u64 hash = mixed(here, at.step, at.stage, component);
    auto const take = [&](i64 x, i64 y, i64 z) {
      hash = hash * 31 + read(x, y, z, (component + 1) % components);
    };
    Box const box = Box{cell, {cell.x + 1, cell.y + 1, cell.z + 1}}.grown(reach);
    if (corners) {
      for (i64 z = box.begin.z; z < box.end.z; ++z)
        for (i64 y = box.begin.y; y < box.end.y; ++y)
          for (i64 x = box.begin.x; x < box.end.x; ++x) take(x, y, z);
      return hash;
    }
    for (i64 x = box.begin.x; x < box.end.x; ++x) take(x, cell.y, cell.z);
    for (i64 y = box.begin.y; y < box.end.y; ++y) take(cell.x, y, cell.z);
    for (i64 z = box.begin.z; z < box.end.z; ++z) take(cell.x, cell.y, z);
    return hash;
  }

  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<u64> const& fields, GridTime at) const {
    auto const read = fields.old(at.stage);
    auto const write = fields[1 - at.stage];
    threads.each(box, [&](i64 x, i64 y, i64 z) {
      for (u32 k = 0; k < components; ++k)
        write(x, y, z, k) = next(read, write(x, y, z, k), {x, y, z}, k, at);
    });
  }
};

u64 initial(u64 seed, Cell cell, u32 component) {
  return mixed(seed, static_cast<u64>(cell.x), static_cast<u64>(cell.y),
               static_cast<u64>(cell.z) * 8 + component);
}

/// The same grid in one piece on the host.
class Whole {
 public:
  Whole(GridOptions const& options, u64 seed)
      : options_(options), grid_(Box::of(options.extents)), seed_(seed) {
    for (auto& field : fields_) field.resize(grid_.cells() * options.components);
    for (u64 i = 0; i < grid_.cells(); ++i)
      for (u32 k = 0; k < options.components; ++k)
        for (u64 field = 0; field < 2; ++field)
          fields_[field][k * grid_.cells() + i] = initial(seed + field, grid_.cell_at(i), k);
  }
  void step(Hashes const& scheme, u64 step) {
    for (u32 stage = 0; stage < 2; ++stage) {
      auto next = fields_[1 - stage];
      for (u64 i = 0; i < grid_.cells(); ++i)
        for (u32 k = 0; k < options_.components; ++k) {
          auto& value = next[k * grid_.cells() + i];
          auto const read = [&](i64 x, i64 y, i64 z, u32 component) {
            return value_at(scheme, stage, {x, y, z}, component);
          };
          value = scheme.next(read, value, grid_.cell_at(i), k, {step, stage});
        }
      fields_[1 - stage] = next;
    }
  }
  u64 value(u32 field, Cell cell, u32 component) const {
    return fields_[field][component * grid_.cells() + grid_.place_of(cell)];
  }

 private:
  u64 value_at(Hashes const& scheme, u32 field, Cell cell, u32 component) const {
    u32 axes = 0;
    Cell const asked = cell;
    for (u32 d = 0; d < 3; ++d) {
      auto const n = static_cast<i64>(grid_.extent(d));
      if (cell[d] >= 0 && cell[d] < n) continue;
      if (options_.boundary[d] == Boundary::none) return initial(seed_ + field, asked, component);
      if (options_.boundary[d] == Boundary::periodic) cell[d] = (cell[d] + n) % n;
      else cell[d] = cell[d] < 0 ? -1 - cell[d] : 2 * n - 1 - cell[d], axes |= 1u << d;
    }
    u64 const found = value(field, cell, component);
    return axes == 0 ? found : scheme.mirrored(found, component, axes);
  }

  GridOptions options_;
  Box grid_;
  u64 seed_;
  std::vector<u64> fields_[2];
};

GridOptions random_options(u64 seed, u32 parts) {
  std::mt19937_64 random(seed);
  auto const upto = [&](u64 most) { return random() % (most + 1); };
  GridOptions options{.components = static_cast<u32>(1 + upto(2))};
  u64* const extents[] = {&options.extents.x, &options.extents.y, &options.extents.z};
  Sides sides;
  u32 const longer = static_cast<u32>(upto(5));
  for (u32 d = 0; d < 3; ++d) {
    // Long ones have tiles that need no halo beside those that do.
    *extents[d] = upto(3) == 0 ? 1 : d == longer ? 1 + upto(60) : 1 + upto(11);
    options.boundary[d] = static_cast<Boundary>(upto(2));
    // No wider than the grid, so that periodic and reflecting sides can show it.
    u64 const most = *extents[d] == 1 ? 0 : std::min<u64>(3, *extents[d]);
    sides.low[d] = static_cast<u32>(upto(most)), sides.high[d] = static_cast<u32>(upto(most));
  }
  if (u64 const cells = options.extents.x * options.extents.y * options.extents.z; cells < parts)
    options.extents.x += parts;
  options.sides = sides;
  options.corners = upto(1) == 0;
  if (upto(2) == 0) {
    for (u32 part = 0; part < parts; ++part) options.shares.push_back(static_cast<double>(upto(4)));
    options.shares[upto(parts - 1)] = 2;
  }
  return options;
}

class Grids : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Grids, test::all_shapes(), test::shape_name);

TEST_P(Grids, are_as_if_uncut) {
  for (int round = 0; round < (test::sanitized ? 3 : 12); ++round) {
    u64 const seed = std::random_device{}();
    SCOPED_TRACE(seed);
    auto const options = random_options(seed, world.device_count());
    Grid<u64> grid(world, options);
    Hashes const scheme{*options.sides, options.corners, options.components};
    constexpr u64 steps = 5;
    Whole whole(options, seed);
    for (u64 step = 0; step < steps; ++step) whole.step(scheme, step);
    for (auto const execution : {GridExecution::one_kernel, GridExecution::kernel_a_step}) {
      for (u32 field = 0; field < 2; ++field)
        grid.fill(field, [&](Cell cell, u32 k) { return initial(seed + field, cell, k); });
      grid.run(scheme, 2, {.execution = execution, .first_step = 0, .launch = launch});
      grid.run(scheme, steps - 2, {.execution = execution, .launch = launch});
      EXPECT_EQ(grid.next_step(), steps);
      for (u32 part = 0; part < world.device_count(); ++part)
        for (u32 field = 0; field < 2; ++field) {
          auto const values = grid.read(field, part);
          Box const box = grid.box(part);
          ASSERT_EQ(values.size(), box.cells() * options.components);
          for (u64 i = 0; i < values.size(); ++i)
            ASSERT_EQ(values[i], whole.value(field, box.cell_at(i % box.cells()),
                                             static_cast<u32>(i / box.cells())))
                << grid.boxes().describe() << ", execution " << static_cast<u32>(execution)
                << ", part " << part << ", field " << field << ", " << i;
        }
    }
    grid.free();
  }
}

/// A field that does not change, and another one that counts. Each stage reads the same halo.
struct Counts {
  MESHPOST_FN u32 reads(GridTime) const { return 0; }
  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime) const {
    auto const u = fields.old(0);
    auto const sum = fields[1];
    threads.each(box,
                 [&](i64 x, i64 y, i64 z) { sum(x, y, z) += u(x - 1, y, z) + u(x, y + 1, z); });
  }
};

TEST_P(Grids, may_read_the_same_halo_in_each_step) {
  Grid<double> grid(world,
                    {.extents = {9, 40}, .boundary = {Boundary::periodic, Boundary::periodic}});
  for (auto const execution : {GridExecution::one_kernel, GridExecution::kernel_a_step}) {
    grid.fill(0, [](Cell cell) { return static_cast<double>(cell.x + 100 * cell.y); });
    grid.fill(1, [](Cell) { return 0.0; });
    grid.run(Counts(), 3, {.execution = execution, .launch = launch});
    for (u32 part = 0; part < world.device_count(); ++part) {
      auto const sums = grid.read(1, part);
      for (u64 i = 0; i < sums.size(); ++i) {
        auto const [x, y, z] = grid.box(part).cell_at(i);
        auto const expected = static_cast<double>((x + 8) % 9 + 100 * y + x + 100 * ((y + 1) % 40));
        ASSERT_EQ(sums[i], 3 * expected) << part << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace meshpost
