#pragma once
// The computation of both programs of this folder. They smooth a chain of cells, cut into one piece
// for each rank. Each new cell is the mean of the old cell and its neighbours; the old cell has
// double weight.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

namespace mp = meshpost;

constexpr mp::u32 steps = 100;  // an even number: then the result is in the first field

// [parts]
// The place of each rank's cells, with its neighbours' cells, in the memory of its device. Parts
// overlap: in a put to a neighbour on the same device, source and target are the same, and nothing
// is copied.
inline std::vector<mp::Extent> overlapping_parts(mp::World const& world, mp::u64 cells) {
  std::vector<mp::Extent> parts;
  parts.reserve(world.size());
  for (mp::u32 rank = 0; rank < world.size(); ++rank)
    parts.push_back({.offset = rank % world.ranks_per_device() * cells, .count = cells + 2});
  return parts;
}
// [/parts]

inline mp::u64 cells_from(int count, char const* const* arguments) {
  mp::u64 const cells = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 64;
  return cells > 0 ? cells : 1;
}

// All cells, and a fixed one at each end.
inline std::vector<double> starting_field(mp::World const& world, mp::u64 cells) {
  std::vector<double> field(world.size() * cells + 2);
  for (mp::u64 i = 0; i < field.size(); ++i)
    field[i] = i % 7 == 0 ? 100.0 : static_cast<double>(i % 13);
  return field;
}

inline void write(mp::World const& world, mp::Window<double> const& window, mp::u64 cells,
                  std::vector<double> const& field) {
  for (mp::u32 rank = 0; rank < world.size(); ++rank)
    window.write(mp::RankId{rank}, 0, std::span(field).subspan(rank * cells, cells + 2));
}

// [plain]
inline void smooth_on_host(std::vector<double>& field) {
  auto next = field;
  for (mp::u32 step = 0; step < steps; ++step, field.swap(next))
    for (mp::u64 i = 1; i + 1 < field.size(); ++i)
      next[i] = 0.25 * (field[i - 1] + field[i + 1]) + 0.5 * field[i];
}
// [/plain]

// Does `steps` steps twice and times the second time. The first time also starts threads and loads
// the kernel.
template <class Steps>
double microseconds_a_step(Steps const& do_steps) {
  do_steps();
  auto const begin = std::chrono::steady_clock::now();
  do_steps();
  std::chrono::duration<double, std::micro> const time = std::chrono::steady_clock::now() - begin;
  return time.count() / steps;
}

struct Way {  // to do the steps
  char const* name;
  double microseconds;  // a step
};

// Compares the ranks' results, of one way after the other, with those of the plain loop. Prints the
// times.
inline bool check(mp::World const& world, mp::Window<double> const& window, mp::u64 cells,
                  std::vector<Way> const& ways) {
  auto expected = starting_field(world, cells);
  double plain = 0;
  for (mp::u64 way = 0; way < ways.size(); ++way)
    plain = microseconds_a_step([&] { smooth_on_host(expected); });
  for (mp::u32 rank = 0; rank < world.size(); ++rank) {
    auto const part = window.read(mp::RankId{rank});
    for (mp::u64 i = 1; i <= cells; ++i)
      if (part[i] != expected[rank * cells + i]) {
        std::printf("cell %llu of rank %u is %g, not %g\n", i, rank, part[i],
                    expected[rank * cells + i]);
        return false;
      }
  }
  if (world.process() != 0) return true;
  std::printf("%u ranks smoothed %llu cells. A step took", world.size(), world.size() * cells);
  for (auto const& way : ways) std::printf(" %.1f us %s,", way.microseconds, way.name);
  std::printf(" %.1f us in a plain loop on one core\n", plain);
  return true;
}
