// Heat spreads in a box whose sides reflect it in x, are periodic in y, and are kept at 0 in z.
// The scheme computes the cells of a box. The library cuts the grid over all devices.
#include <meshpost/meshpost.hpp>

#include <cmath>
#include <cstdio>
#include <numbers>

using namespace meshpost;

// [scheme]
struct Heat {
  double rate;  // of a step: diffusivity * time / width^2; stable up to 1/6

  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime at) const {
    auto const u = fields.old(at.step % 2);
    auto const next = fields[1 - at.step % 2];
    threads.each(box, [&](i64 x, i64 y, i64 z) {
      double const sum = u(x - 1, y, z) + u(x + 1, y, z) + u(x, y - 1, z) + u(x, y + 1, z) +
                         u(x, y, z - 1) + u(x, y, z + 1);
      next(x, y, z) = u(x, y, z) + rate * (sum - 6 * u(x, y, z));
    });
  }
};
// [/scheme]

int main() try {
  World world;
  constexpr u64 n = 24, steps = 60;
  // One wave in z, which decays evenly. Cells 0 and n - 1 lie one width from the cold sides.
  double const k = std::numbers::pi / (n + 1);
  auto const wave = [&](Cell cell) { return std::sin(k * static_cast<double>(cell.z + 1)); };
  Heat const heat{0.15};

  // [grid]
  Grid<double> grid(world,
                    {.extents = {n, n, n}, .boundary = {Boundary::reflecting, Boundary::periodic}});
  auto const cold = [&](Cell cell) { return cell.z < 0 || cell.z >= static_cast<i64>(n); };
  for (u32 field = 0; field < 2; ++field)
    grid.fill(field, [&](Cell cell) { return cold(cell) ? 0 : wave(cell); });
  grid.run(heat, steps);
  // [/grid]

  double const left = std::pow(1 - 2 * heat.rate * (1 - std::cos(k)), steps);
  double worst = 0;
  for (u32 part = grid.first_part(); part < grid.first_part() + grid.part_count(); ++part) {
    auto const values = grid.read(steps % 2, part);
    for (u64 i = 0; i < values.size(); ++i)
      worst = std::max(worst, std::abs(values[i] - left * wave(grid.box(part).cell_at(i))));
  }
  std::printf("%s: %llu steps, largest error %.1e\n", grid.boxes().describe().c_str(),
              static_cast<unsigned long long>(steps), worst);
  return worst < 1e-12 ? 0 : 1;
} catch (Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
