#pragma once
#include "meshpost/base/strided.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost {

/// A copy between two layouts of equal extents, as devices carry it out: nested loops over runs of
/// bytes that lie side by side on both sides. A plain value.
struct StridedCopy {
  struct Loop {
    u64 count = 1;
    u64 target = 0, source = 0;  ///< bytes from one turn to the next
  };

  char* target = nullptr;
  char const* source = nullptr;
  u64 run = 0;    ///< bytes
  u32 loops = 0;  ///< 0: one run is all
  Loop loop[3];   ///< the innermost first; unused ones have one turn

  MESHPOST_FN u64 runs() const { return loop[0].count * loop[1].count * loop[2].count; }
  MESHPOST_FN u64 bytes() const { return run * runs(); }
  /// True if source and target are the same memory.
  MESHPOST_FN bool in_place() const {
    bool equal = target == source;
    for (Loop const& one : loop) equal &= one.target == one.source;
    return equal;
  }
  /// Runs, counted as each_run() passes them: how many in sequence lie side by side at the target.
  MESHPOST_FN u64 runs_side_by_side() const {
    u64 following = 1;
    for (Loop const& one : loop) {
      if (one.count == 1) continue;
      if (one.target != following * run) break;
      following *= one.count;
    }
    return following;
  }
  MESHPOST_FN char* target_of(u64 number) const {
    return target + at(number, loop[0].target, loop[1].target, loop[2].target);
  }
  MESHPOST_FN char const* source_of(u64 number) const {
    return source + at(number, loop[0].source, loop[1].source, loop[2].source);
  }
  /// Calls work(target, source) for each run.
  template <class Work>
  MESHPOST_FN void each_run(Work&& work) const {
    for (u64 k = 0; k < loop[2].count; ++k)
      for (u64 j = 0; j < loop[1].count; ++j)
        for (u64 i = 0; i < loop[0].count; ++i)
          work(target + i * loop[0].target + j * loop[1].target + k * loop[2].target,
               source + i * loop[0].source + j * loop[1].source + k * loop[2].source);
  }

 private:
  MESHPOST_FN u64 at(u64 number, u64 inner, u64 middle, u64 outer) const {
    u64 const rows = number / loop[0].count;
    return number % loop[0].count * inner + rows % loop[1].count * middle +
           rows / loop[1].count * outer;
  }
};

/// The loops for a copy of elements of so many bytes. Inner loops have the smaller steps at the
/// target, which may be far: consecutive stores there should lie side by side. Directions that lie
/// side by side on both sides become one. The layouts are valid, unique at the target, and inside
/// their spans.
MESHPOST_COLD inline StridedCopy plan_strided_copy(void* target, StridedLayout const& to,
                                                   void const* source, StridedLayout const& from,
                                                   u64 element) {
  StridedCopy copy;
  if (to.extents.empty()) {
    copy.loop[0].count = 0;  // no run at all
    return copy;
  }
  copy.target = static_cast<char*>(target) + to.offset * element;
  copy.source = static_cast<char const*>(source) + from.offset * element;
  copy.run = element;
  StridedCopy::Loop loops[] = {{to.extents.x, to.strides.x * element, from.strides.x * element},
                               {to.extents.y, to.strides.y * element, from.strides.y * element},
                               {to.extents.z, to.strides.z * element, from.strides.z * element}};
  auto const order = [&](u32 a, u32 b) {
    if (loops[a].target <= loops[b].target) return;
    auto const swapped = loops[a];
    loops[a] = loops[b];
    loops[b] = swapped;
  };
  for (auto& one : loops)
    if (one.count == 1) one.target = 0;  // its stride has no meaning
  order(0, 1), order(1, 2), order(0, 1);
  for (auto const& next : loops) {
    auto& last = copy.loop[copy.loops - (copy.loops != 0)];
    if (next.count == 1) continue;
    if (copy.loops == 0 && next.target == copy.run && next.source == copy.run)
      copy.run *= next.count;
    else if (copy.loops != 0 && next.target == last.target * last.count &&
             next.source == last.source * last.count)
      last.count *= next.count;
    else copy.loop[copy.loops++] = next;
  }
  return copy;
}

}  // namespace meshpost

#if defined(__CUDA_ARCH__)
#include "meshpost/device/cuda/strided_copy.hpp"
#else
#include "meshpost/device/cpu/strided_copy.hpp"
#endif
