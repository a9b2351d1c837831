// The same exchange with one kernel for each step. The host launches each kernel, then waits for
// all. It then does the same with a graph of all steps.
#include "chain.hpp"

// [kernel]
struct SmoothOnce {
  mp::Window<double> now, then;  // `now` has the neighbours' cells too: the run before put them
  mp::u64 cells;

  static constexpr mp::Tag from_left{0}, from_right{1};

  MESHPOST_FN void operator()(mp::Rank& self) const {
    bool const first = self.id() == 0, last = self.id() + 1 == self.size();
    auto const old = now.local(self), next = then.local(self);
    self.each(cells,
              [&](mp::u64 i) { next[i + 1] = 0.25 * (old[i] + old[i + 2]) + 0.5 * old[i + 1]; });
    if (!first)
      self.put_notify(then.at(mp::RankId{self.id() - 1}, cells + 1), next.subspan(1, 1),
                      from_right);
    if (!last)
      self.put_notify(then.at(mp::RankId{self.id() + 1}, 0), next.subspan(cells, 1), from_left);
    if (!first) self.wait(then, from_left);  // in this run: at its end counters become 0
    if (!last) self.wait(then, from_right);
  }
};
// [/kernel]

// halo_steps [CELLS of a rank]
int main(int count, char** arguments) try {
  mp::World world;
  auto const cells = cells_from(count, arguments);
  auto const parts = overlapping_parts(world, cells);
  mp::Window<double> const fields[]{world.window<double>(parts, mp::Tags{2}, "even"),
                                    world.window<double>(parts, mp::Tags{2}, "odd")};
  for (auto const& window : fields)  // both have the fixed cells at the ends
    write(world, window, cells, starting_field(world, cells));
  auto const launched = microseconds_a_step([&] {
    // [launches]
    std::vector<mp::Run> runs;
    runs.reserve(steps);
    for (mp::u32 step = 0; step < steps; ++step)  // a launch does not wait for the run before
      runs.push_back(world.launch(SmoothOnce{fields[step % 2], fields[1 - step % 2], cells}));
    for (auto& run : runs) run.wait();  // throws if a rank failed
    // [/launches]
  });
  // [graph]
  mp::Graph all_steps;  // made once; it may be run again and again
  for (mp::u32 step = 0; step < steps; ++step)
    all_steps.add(SmoothOnce{fields[step % 2], fields[1 - step % 2], cells});
  // [/graph]
  auto const by_graph = microseconds_a_step([&] { world.run(all_steps); });
  return check(world, fields[0], cells, {{"a launch each", launched}, {"a graph", by_graph}}) ? 0
                                                                                              : 1;
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
