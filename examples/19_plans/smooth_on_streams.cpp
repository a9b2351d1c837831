// The same with a kernel for each step. Streams carry out the plan between the kernels; the host
// only queues work, and waits once.
#include "matrix.hpp"

using namespace meshpost;

constexpr u32 steps = 40;

struct SmoothOnce {
  Window<double> from, to;
  Window<u64> sizes, offsets, columns;

  MESHPOST_FN void operator()(Rank& self) const {
    u64 const own = sizes.local(self)[0];
    u64 const* const begin = offsets.local(self).data();
    u64 const* const column = columns.local(self).data();
    u64 const first = own * self.local_id() / self.local_size();
    u64 const last = own * (self.local_id() + 1) / self.local_size();
    auto const x = from.local(self), y = to.local(self);
    self.each(last - first, [&](u64 i) {
      u64 const row = first + i;
      double sum = 0;
      for (u64 k = begin[row]; k < begin[row + 1]; ++k) sum += x[column[k]];
      y[row] = sum / static_cast<double>(begin[row + 1] - begin[row]);
    });
  }
};

int main() try {
  World world;
  JobMemory job;
  auto const all = matrix::distribute(world, job);
  auto const memory = matrix::allocate(world, all);
  auto const x_of = [&](u32 device, u32 step) {
    return memory.x[step % 2].part(RankId{(all.first + device) * world.ranks_per_device()});
  };
  // [streams]
  std::vector<StreamEndpoint> streams;
  Launch behind;
  for (u32 d = 0; d < all.devices; ++d) streams.emplace_back(world, d);
  for (auto const& stream : streams) behind.streams.push_back(&stream.stream());
  StreamExchange<double> const halo(world, all.plan, {streams.begin(), streams.end()});
  std::vector<Run> runs;
  for (u32 step = 0; step < steps; ++step) {
    for (u32 d = 0; d < all.devices; ++d) halo.start(d, x_of(d, step));
    // A kernel for rows that need no halo could follow here.
    for (u32 d = 0; d < all.devices; ++d) halo.finish(d, x_of(d, step));
    auto const& [x, sizes, offsets, columns] = memory;
    runs.push_back(
        world.launch(SmoothOnce{x[step % 2], x[1 - step % 2], sizes, offsets, columns}, behind));
  }
  for (auto& run : runs) run.wait();
  for (auto& stream : streams) stream.synchronize();
  // [/streams]
  if (world.process() == 0) std::printf("%s", halo.explain(0).c_str());
  free_exchange(world, halo);
  if (matrix::differences(world, all, memory.x[steps % 2], steps) != 0) return 1;
  std::printf("%u steps on %u devices: equal to the bit\n", steps, world.device_count());
  return 0;
} catch (Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
