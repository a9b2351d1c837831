// The viscous Burgers equation u_t + u u_x = v u_xx on a periodic line, by the three-stage method
// of Shu and Osher: three stages a step, each of which reads the halo of the field before.
#include <meshpost/meshpost.hpp>

#include <cmath>
#include <cstdio>
#include <numbers>

using namespace meshpost;

// [scheme]
struct Burgers {
  static constexpr u32 stages = 3;
  double time, viscosity;  // both in units of the cells' width

  MESHPOST_FN u32 reads(GridTime at) const { return at.stage; }

  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime at) const {
    auto const u = fields.old(at.stage), begin = fields.old(0);
    auto const next = fields[(at.stage + 1) % 3];
    double const weight = at.stage == 0 ? 1 : at.stage == 1 ? 0.25 : 2.0 / 3;
    threads.each(box, [&](i64 x, i64 y, i64 z) {
      double const west = u(x - 1, y, z), here = u(x, y, z), east = u(x + 1, y, z);
      // A Lax-Friedrichs flux; |u| is at most 1.
      auto const flux = [](double a, double b) { return 0.25 * (a * a + b * b) - 0.5 * (b - a); };
      double const change =
          flux(west, here) - flux(here, east) + viscosity * (west - 2 * here + east);
      next(x, y, z) = (1 - weight) * begin(x, y, z) + weight * (here + time * change);
    });
  }
};
// [/scheme]

int main() try {
  World world;
  constexpr u64 n = 400, steps = 300;
  Grid<double> grid(world, {.extents = {n}, .boundary = {Boundary::periodic}, .fields = 3});
  grid.fill(0, [](Cell cell) {
    return std::sin(2 * std::numbers::pi * (static_cast<double>(cell.x) + 0.5) / n);
  });
  grid.run(Burgers{.time = 0.4, .viscosity = 0.1}, steps);

  double sum = 0, most = 0;
  for (u32 part = 0; part < grid.boxes().parts(); ++part)
    for (double const value : grid.read(0, part)) sum += value, most = std::max(most, value);
  // Fluxes cancel, and the wave becomes a shock, whose height sinks.
  std::printf("%s: the sum is %.1e, the largest value %.3f\n", grid.boxes().describe().c_str(), sum,
              most);
  return std::abs(sum) < 1e-10 && most > 0.5 && most < 0.99 ? 0 : 1;
} catch (Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
