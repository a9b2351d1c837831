// A chain of cells, cut into one piece for each rank, is smoothed; neighbours exchange their border
// cells.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <vector>

namespace mp = meshpost;

constexpr mp::u64 cells = 64;  // of a rank; a cell of each neighbour stands on either side
constexpr mp::u32 steps = 100;

// [kernel]
struct Smooth {
  mp::Window<double> fields[2];  // read one, write the other, in turn

  static constexpr mp::Tag from_left{0},
      from_right{1};  // with one tag a fast neighbour would count for both

  MESHPOST_FN void operator()(mp::Rank& self) const {
    bool const first = self.id() == 0, last = self.id() + 1 == self.size();
    for (mp::u32 step = 0; step < steps; ++step) {
      auto const& now = fields[step % 2];
      auto const old = now.local(self), next = fields[1 - step % 2].local(self);
      if (!first)
        self.put_notify(now.at(mp::RankId{self.id() - 1}, cells + 1), old.subspan(1, 1),
                        from_right);
      if (!last)
        self.put_notify(now.at(mp::RankId{self.id() + 1}, 0), old.subspan(cells, 1), from_left);
      if (!first) self.wait(now, from_left);
      if (!last) self.wait(now, from_right);
      self.each(cells,
                [&](mp::u64 i) { next[i + 1] = 0.25 * (old[i] + old[i + 2]) + 0.5 * old[i + 1]; });
      self.flush(now);  // the next step overwrites what was sent
    }
  }
};
// [/kernel]

// [parts]
// Where each rank's cells and its neighbours' lie in the memory of its device. The parts overlap: a
// put to a neighbour on the same device finds its byte in place and copies nothing.
std::vector<mp::Extent> overlapping_parts(mp::World const& world) {
  std::vector<mp::Extent> parts;
  parts.reserve(world.size());
  for (mp::u32 rank = 0; rank < world.size(); ++rank)
    parts.push_back({.offset = rank % world.ranks_per_device() * cells, .count = cells + 2});
  return parts;
}
// [/parts]

std::vector<double> smooth_on_host(std::vector<double> field) {
  auto next = field;
  for (mp::u32 step = 0; step < steps; ++step, field.swap(next))
    for (mp::u64 i = 1; i + 1 < field.size(); ++i)
      next[i] = 0.25 * (field[i - 1] + field[i + 1]) + 0.5 * field[i];
  return field;
}

int main() try {
  mp::World world;
  auto const parts = overlapping_parts(world);
  Smooth kernel{{world.window<double>(parts, mp::Tags{2}, "even"),
                 world.window<double>(parts, mp::Tags{2}, "odd")}};

  std::vector<double> field(world.size() * cells + 2);  // and a fixed cell at each end
  for (mp::u64 i = 0; i < field.size(); ++i)
    field[i] = i % 7 == 0 ? 100.0 : static_cast<double>(i % 13);
  for (mp::u32 rank = 0; rank < world.size(); ++rank)
    for (auto const& window : kernel.fields)
      window.write(mp::RankId{rank}, 0, std::span(field).subspan(rank * cells, cells + 2));
  world.run(kernel);

  auto const expected = smooth_on_host(field);
  for (mp::u32 rank = 0; rank < world.size(); ++rank) {
    auto const part = kernel.fields[steps % 2].read(mp::RankId{rank});
    for (mp::u64 i = 1; i <= cells; ++i)
      if (part[i] != expected[rank * cells + i]) {
        std::printf("cell %llu of rank %u is %g, not %g\n", i, rank, part[i],
                    expected[rank * cells + i]);
        return 1;
      }
  }
  if (world.process() == 0)
    std::printf("%u ranks smoothed %zu cells %u times\n", world.size(), field.size(), steps);
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
