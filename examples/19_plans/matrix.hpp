#pragma once
// A sparse matrix whose rows are distributed over all devices: that of a square grid, where each
// point becomes the mean of itself and its neighbours.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <utility>
#include <vector>

namespace matrix {

using meshpost::u32, meshpost::u64;

constexpr u64 side = 60, size = side * side;

/// A device's rows. Columns are places in its array: its own elements, then its halo.
struct Rows {
  std::vector<u64> offsets{0}, columns;
};

inline std::vector<u64> neighbours(u64 point) {
  u64 const row = point / side, column = point % side;
  std::vector<u64> all;
  if (row > 0) all.push_back(point - side);
  if (column > 0) all.push_back(point - 1);
  all.push_back(point);
  if (column + 1 < side) all.push_back(point + 1);
  if (row + 1 < side) all.push_back(point + side);
  return all;
}

inline double initial(u64 point) { return point % 7 == 0 ? 1.0 : 0.0; }

/// The rows of this process's devices, and what the devices send each other.
struct Distributed {
  u32 devices = 0, first = 0;  ///< of this process
  meshpost::Plan plan;
  std::vector<Rows> rows;
};

inline Distributed distribute(meshpost::World const& world, meshpost::JobMemory& job) {
  auto const distribution = meshpost::Distribution::block(size, world.device_count());
  auto const devices = static_cast<u32>(world.devices().size());
  u32 const first = world.first_rank() / world.ranks_per_device();
  std::vector<Rows> all(devices);  // first with global columns
  std::vector<meshpost::Plan::Pattern> patterns;
  for (u32 i = 0; i < devices; ++i) {
    auto& [offsets, columns] = all[i];
    for (u64 place = 0; place < distribution.size_of(first + i); ++place) {
      for (u64 const other : neighbours(distribution.index_of(first + i, place)))
        columns.push_back(other);
      offsets.push_back(columns.size());
    }
    patterns.push_back({offsets, columns});
  }
  auto const plan = meshpost::Plan::from_pattern(distribution, patterns, &job);
  for (u32 i = 0; i < devices; ++i)
    for (u64& column : all[i].columns) column = plan.place_of(first + i, column);
  return {devices, first, plan, std::move(all)};
}

/// Windows of all devices, for kernels: every rank of a device has all of its rows and elements.
struct Memory {
  meshpost::Window<double> x[2];
  meshpost::Window<u64> sizes, offsets, columns;
};

inline Memory allocate(meshpost::World& world, Distributed const& all) {
  u64 const most = all.plan.most().size;  // elements of any device
  auto const doubles = [&] { return world.window<double>(meshpost::shared_parts(world, most)); };
  auto const numbers = [&](u64 count) {
    return world.window<u64>(meshpost::shared_parts(world, count));
  };
  Memory memory{{doubles(), doubles()}, numbers(2), numbers(most + 1), numbers(5 * most)};
  for (u32 i = 0; i < all.devices; ++i) {
    u32 const part = all.first + i;
    meshpost::RankId const rank{part * world.ranks_per_device()};
    std::vector<double> values;
    for (u64 place = 0; place < all.plan.of(part).own; ++place)
      values.push_back(initial(all.plan.distribution().index_of(part, place)));
    u64 const sizes[] = {all.plan.of(part).own, all.plan.of(part).size()};
    memory.x[0].write(rank, 0, std::span<double const>(values));
    memory.sizes.write(rank, 0, std::span<u64 const>(sizes));
    memory.offsets.write(rank, 0, std::span<u64 const>(all.rows[i].offsets));
    memory.columns.write(rank, 0, std::span<u64 const>(all.rows[i].columns));
  }
  return memory;
}

/// The same steps on the host, with the same order of sums. Returns the number of points of this
/// process that differ from x.
inline int differences(meshpost::World const& world, Distributed const& all,
                       meshpost::Window<double> const& x, u32 steps) {
  std::vector<double> expected(size), next(size);
  for (u64 point = 0; point < size; ++point) expected[point] = initial(point);
  for (u32 step = 0; step < steps; ++step) {
    for (u64 point = 0; point < size; ++point) {
      auto const others = neighbours(point);
      double sum = 0;
      for (u64 const other : others) sum += expected[other];
      next[point] = sum / static_cast<double>(others.size());
    }
    std::swap(expected, next);
  }
  int wrong = 0;
  for (u32 part = all.first; part < all.first + all.devices; ++part) {
    auto const values = x.read(meshpost::RankId{part * world.ranks_per_device()});
    for (u64 place = 0; place < all.plan.of(part).own; ++place)
      if (u64 const point = all.plan.distribution().index_of(part, place);
          values[place] != expected[point] && wrong++ == 0)
        std::printf("point %llu is %g, not %g\n", static_cast<unsigned long long>(point),
                    values[place], expected[point]);
  }
  return wrong;
}

}  // namespace matrix
