// Steps x = A x with a sparse matrix whose rows are distributed over all devices, in one kernel. A
// plan says which elements of x each device needs from others. It comes from the pattern of the
// matrix; here that of a square grid, where each point becomes the mean of itself and its
// neighbours.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <vector>

using namespace meshpost;

constexpr u64 side = 60, size = side * side;
constexpr u32 steps = 40;

// A device's rows. Columns are places in its array: its own elements, then its halo.
struct Rows {
  std::vector<u64> offsets{0}, columns;
};

struct Smooth {
  Exchange<double> exchange;
  Window<double> x[2];
  Window<u64> sizes, offsets, columns;

  MESHPOST_FN void operator()(Rank& self) const {
    u64 const own = sizes.local(self)[0], all = sizes.local(self)[1];
    u64 const* const begin = offsets.local(self).data();
    u64 const* const column = columns.local(self).data();
    u64 const first = own * self.local_id() / self.local_size();
    u64 const last = own * (self.local_id() + 1) / self.local_size();
    // [steps]
    RankExchange<double> halo(self, exchange);
    for (u32 step = 0; step < steps; ++step) {
      auto const from = x[step % 2].local(self).subspan(0, all);
      auto const to = x[1 - step % 2].local(self);
      halo.start(from);
      // Rows that need no halo could be computed here.
      halo.finish(from);
      self.each(last - first, [&](u64 i) {
        u64 const row = first + i;
        double sum = 0;
        for (u64 k = begin[row]; k < begin[row + 1]; ++k) sum += from[column[k]];
        to[row] = sum / static_cast<double>(begin[row + 1] - begin[row]);
      });
    }
    // [/steps]
  }
};

std::vector<u64> neighbours(u64 point) {
  u64 const row = point / side, column = point % side;
  std::vector<u64> all;
  if (row > 0) all.push_back(point - side);
  if (column > 0) all.push_back(point - 1);
  all.push_back(point);
  if (column + 1 < side) all.push_back(point + 1);
  if (row + 1 < side) all.push_back(point + side);
  return all;
}

double initial(u64 point) { return point % 7 == 0 ? 1.0 : 0.0; }

int main() try {
  World world;
  JobMemory job;
  auto const rows = Distribution::block(size, world.device_count());
  auto const devices = static_cast<u32>(world.devices().size());
  u32 const first = world.first_rank() / world.ranks_per_device();

  // The matrix's rows here, first with global columns.
  std::vector<Rows> matrix(devices);
  std::vector<Plan::Pattern> patterns;
  for (u32 i = 0; i < devices; ++i) {
    auto& [offsets, columns] = matrix[i];
    for (u64 place = 0; place < rows.size_of(first + i); ++place) {
      for (u64 const other : neighbours(rows.index_of(first + i, place))) columns.push_back(other);
      offsets.push_back(columns.size());
    }
    patterns.push_back({offsets, columns});
  }
  auto const plan = Plan::from_pattern(rows, patterns, &job);
  if (world.process() == 0) std::printf("%s", plan.explain(Bytes{sizeof(double)}).c_str());

  // Every rank of a device has all of the device's elements.
  auto const exchange = make_exchange<double>(world, plan);
  u64 const most = plan.most().size;  // elements of any device
  auto const doubles = [&] { return world.window<double>(shared_parts(world, most)); };
  auto const numbers = [&](u64 count) { return world.window<u64>(shared_parts(world, count)); };
  Smooth const smooth{
      exchange, {doubles(), doubles()}, numbers(2), numbers(most + 1), numbers(5 * most)};
  for (u32 i = 0; i < devices; ++i) {
    u32 const part = first + i;
    RankId const rank{part * world.ranks_per_device()};
    std::vector<double> values;
    for (u64 place = 0; place < plan.of(part).own; ++place)
      values.push_back(initial(rows.index_of(part, place)));
    for (u64& column : matrix[i].columns) column = plan.place_of(part, column);
    u64 const sizes[] = {plan.of(part).own, plan.of(part).size()};
    smooth.x[0].write(rank, 0, std::span<double const>(values));
    smooth.sizes.write(rank, 0, std::span<u64 const>(sizes));
    smooth.offsets.write(rank, 0, std::span<u64 const>(matrix[i].offsets));
    smooth.columns.write(rank, 0, std::span<u64 const>(matrix[i].columns));
  }
  world.run(smooth);

  // The same on the host, with the same order of sums.
  std::vector<double> expected(size), next(size);
  for (u64 point = 0; point < size; ++point) expected[point] = initial(point);
  for (u32 step = 0; step < steps; ++step) {
    for (u64 point = 0; point < size; ++point) {
      auto const all = neighbours(point);
      double sum = 0;
      for (u64 const other : all) sum += expected[other];
      next[point] = sum / static_cast<double>(all.size());
    }
    std::swap(expected, next);
  }
  for (u32 part = first; part < first + devices; ++part) {
    auto const values = smooth.x[steps % 2].read(RankId{part * world.ranks_per_device()});
    for (u64 place = 0; place < plan.of(part).own; ++place)
      if (u64 const point = rows.index_of(part, place); values[place] != expected[point]) {
        std::printf("point %llu is %g, not %g\n", static_cast<unsigned long long>(point),
                    values[place], expected[point]);
        return 1;
      }
  }
  std::printf("%u steps on %u devices: equal to the bit\n", steps, world.device_count());
  return 0;
} catch (Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
