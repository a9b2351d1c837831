#pragma once
// Both versions of particles: all segments are one piece.
#include "particles/host_lists.hpp"
#include "particles/phases.hpp"
#include "particles/troubles.hpp"

namespace plain {

using meshpost::u32;

/// All segments, as the one device has them.
inline particles::Range all_of(particles::Problem const& problem) { return {0, problem.segments}; }

/// All particles by number. \throws Error(kernel_failed) if one is missing
inline particles::State state_of(particles::Problem const& problem, std::byte* lists) {
  particles::State state(problem.particles, particles::Row{0, 0, 0, 0, -1});
  meshpost::u64 found = 0;
  for (u32 s = 0; s < problem.segments; ++s)
    found += particles::read_list(
        particles::Lists<float>{lists, problem.chunks}[s + particles::halo], s, state);
  if (found != problem.particles)
    throw meshpost::Error(meshpost::Kind::kernel_failed, "read the result",
                          "there are " + std::to_string(found) + " particles, and " +
                              std::to_string(problem.particles) + " at the beginning",
                          "this is a bug of the program");
  return state;
}

}  // namespace plain
