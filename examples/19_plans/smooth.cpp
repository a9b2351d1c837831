// Steps x = A x with a sparse matrix whose rows are distributed over all devices, in one kernel. A
// plan says which elements of x each device needs from others. It comes from the pattern of the
// matrix (matrix.hpp).
#include "matrix.hpp"

using namespace meshpost;

constexpr u32 steps = 40;

struct Smooth {
  Exchange<double> exchange;
  matrix::Memory memory;

  MESHPOST_FN void operator()(Rank& self) const {
    u64 const own = memory.sizes.local(self)[0], all = memory.sizes.local(self)[1];
    u64 const* const begin = memory.offsets.local(self).data();
    u64 const* const column = memory.columns.local(self).data();
    u64 const first = own * self.local_id() / self.local_size();
    u64 const last = own * (self.local_id() + 1) / self.local_size();
    auto const* const x = memory.x;
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

int main() try {
  World world;
  JobMemory job;
  auto const all = matrix::distribute(world, job);
  if (world.process() == 0) std::printf("%s", all.plan.explain(Bytes{sizeof(double)}).c_str());
  Smooth const smooth{make_exchange<double>(world, all.plan), matrix::allocate(world, all)};
  world.run(smooth);
  if (matrix::differences(world, all, smooth.memory.x[steps % 2], steps) != 0) return 1;
  std::printf("%u steps on %u devices: equal to the bit\n", steps, world.device_count());
  return 0;
} catch (Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
