#pragma once
#include <meshpost/array/grid_field.hpp>

#include "rows.hpp"
#include "scheme.hpp"

namespace euler {

/// The equations as a scheme of Grid, with three fields. A stage reads the halo of the field with
/// its number and writes the next one. The last writes field 0, which it reads at the same cell
/// only. So each step begins and ends in field 0.
struct Scheme {
  static constexpr u32 stages = 3, fields = 3;
  static constexpr int max_threads = 256;

  Equations equations;

  MESHPOST_FN u32 reads(meshpost::GridTime at) const { return at.stage; }

  /// Not inlined: with the kernel around it, it needs more registers than a thread has (255; 166
  /// for this alone on an H100).
  MESHPOST_FN __attribute__((noinline)) void operator()(meshpost::GridThreads const& threads,
                                                        meshpost::Box const& box,
                                                        meshpost::GridFields<double> const& all,
                                                        meshpost::GridTime at) const {
    auto const now = all.old(at.stage), begin = all.old(0);
    auto const next = all[(at.stage + 1) % fields];
#if !defined(__CUDA_ARCH__)
    if (threads.threads == 1) return advance_rows(equations, box, now, begin, next, at.stage);
#endif
    threads.each(
        box, [&](i64 x, i64 y, i64 z) { equations.advance(now, begin, next, x, y, z, at.stage); });
  }

  MESHPOST_FN double mirrored(double value, u32 component, u32 axes) const {
    return Equations::mirrored(value, component, axes);
  }
};

}  // namespace euler
