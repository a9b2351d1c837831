// Neighbours exchange their border cells: one kernel for all steps.
#include "chain.hpp"

// [kernel]
struct Smooth {
  mp::Window<double> fields[2];  // read from one, written to the other, alternately
  mp::u64 cells;                 // of a rank; at each end is one cell of the neighbour

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
      self.flush(now);  // the next step overwrites the sent cells
    }
  }
};
// [/kernel]

// halo [CELLS of a rank]
int main(int count, char** arguments) try {
  mp::World world;
  auto const cells = cells_from(count, arguments);
  auto const parts = overlapping_parts(world, cells);
  Smooth const kernel{{world.window<double>(parts, mp::Tags{2}, "even"),
                       world.window<double>(parts, mp::Tags{2}, "odd")},
                      cells};
  for (auto const& window : kernel.fields)  // both have the fixed cells at the ends
    write(world, window, cells, starting_field(world, cells));
  auto const time = microseconds_a_step([&] { world.run(kernel); });
  return check(world, kernel.fields[0], cells, {{"in one kernel", time}}) ? 0 : 1;
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
