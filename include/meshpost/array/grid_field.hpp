#pragma once
#include "meshpost/array/box.hpp"

// The side of a grid that a scheme sees, on all kinds of device (array/grid.hpp).

namespace meshpost {

/// The layout of a part's memory: its box with its halo (its frame), x fastest, then components.
struct GridFrame {
  u64 first = 0;  ///< offset of cell (0, 0, 0), modulo 2^64: that cell may lie elsewhere
  u64 row = 0, plane = 0,
      component = 0;  ///< elements to the next in y, in z, of the next component

  MESHPOST_FN u64 place(i64 x, i64 y, i64 z) const {
    return first + static_cast<u64>(x) + static_cast<u64>(y) * row + static_cast<u64>(z) * plane;
  }
};

/// The values of a field on a device, by the cells' numbers in the whole grid. Cells of the part's
/// box, and of its halo. Not checked.
template <class T>
class GridField {
 public:
  GridField() = default;
  MESHPOST_FN GridField(T* data, GridFrame const& frame) : data_(data), frame_(frame) {}

  MESHPOST_FN T& operator()(i64 x, i64 y, i64 z) const { return data_[frame_.place(x, y, z)]; }
  MESHPOST_FN T& operator()(i64 x, i64 y, i64 z, u32 component) const {
    return data_[frame_.place(x, y, z) + component * frame_.component];
  }
  /// From here on, neighbours are a fixed number of elements away: frame().row and so on.
  MESHPOST_FN T* at(i64 x, i64 y, i64 z) const { return data_ + frame_.place(x, y, z); }
  MESHPOST_FN GridFrame const& frame() const { return frame_; }

 private:
  T* data_ = nullptr;
  GridFrame frame_;
};

#if !defined(__CUDACC_RTC__)
namespace detail {
/// \throws Error(bad_argument)
[[noreturn]] void refuse_field(u32 field, u32 count);
}  // namespace detail
#endif

/// All fields of a grid on a device.
template <class T>
class GridFields {
 public:
  GridFields() = default;
  /// `pitch`: elements from a field to the next; `count` of them.
  // NOLINTNEXTLINE(bugprone-easily-swappable-parameters): as in GridMemory
  MESHPOST_FN GridFields(T* data, u64 pitch, u32 count, GridFrame const& frame)
      : data_(data), pitch_(pitch), count_(count), frame_(frame) {}

  /// On CPU devices a field that the grid doesn't have ends the run. On GPUs it is not checked.
  MESHPOST_FN GridField<T> operator[](u32 field) const { return {data_of(field), frame_}; }
  /// To read only, which compilers use.
  MESHPOST_FN GridField<T const> old(u32 field) const { return {data_of(field), frame_}; }

 private:
  MESHPOST_FN T* data_of(u32 field) const {
#if !defined(__CUDA_ARCH__) && !defined(__CUDACC_RTC__)
    if (field >= count_) detail::refuse_field(field, count_);
#endif
    return data_ + field * pitch_;
  }

  T* data_ = nullptr;
  u64 pitch_ = 0;
  u32 count_ = 0;
  GridFrame frame_;
};

/// The threads that do a box together: one on CPU devices, those of a block on GPUs.
struct GridThreads {
  u32 thread = 0, threads = 1;

  /// Calls work(x, y, z) for each cell of the box, each by one thread; x is the fastest.
  template <class Work>
  MESHPOST_FN void each(Box const& box, Work&& work) const {
    if (box.empty()) return;
    if (threads == 1) {
      for (i64 z = box.begin.z; z < box.end.z; ++z)
        for (i64 y = box.begin.y; y < box.end.y; ++y)
          for (i64 x = box.begin.x; x < box.end.x; ++x) work(x, y, z);
      return;
    }
    // Threads side by side in x, as many as a row needs, so that each computes its x only once.
    u32 const width = static_cast<u32>(box.end.x - box.begin.x);
    u32 const height = static_cast<u32>(box.end.y - box.begin.y);
    u32 const lines = height * static_cast<u32>(box.end.z - box.begin.z);
    u32 wide = 1;
    while (wide < width && wide * 2 <= threads && (wide < most_wide || wide * lines < threads))
      wide *= 2;
    u32 const column = thread % wide, rows = threads / wide;
    for (u32 line = thread / wide; line < lines && thread < rows * wide; line += rows) {
      i64 const y = box.begin.y + line % height, z = box.begin.z + line / height;
      for (u32 x = column; x < width; x += wide) work(box.begin.x + x, y, z);
    }
  }

 private:
  static constexpr u32 most_wide = 64;
};

/// The stage that is being computed.
struct GridTime {
  u64 step = 0;
  u32 stage = 0;  ///< of the step, from 0
};

namespace detail {

/// Stages of a step.
template <class Scheme>
MESHPOST_FN constexpr u32 stages_of() {
  if constexpr (requires { Scheme::stages; }) return Scheme::stages;
  else return 1;
}
/// Threads of a rank on GPUs. More loads in flight use more of the memory's bandwidth. But with
/// more threads, each has less than 128 registers, and what the exchange spills is loaded again
/// after each wait.
template <class Scheme>
MESHPOST_FN constexpr u32 most_threads_of() {
  if constexpr (requires { Scheme::max_threads; }) return static_cast<u32>(Scheme::max_threads);
  else return 512;
}
/// The field whose halo a stage reads.
template <class Scheme>
MESHPOST_FN u32 read_by(Scheme const& scheme, GridTime at) {
  if constexpr (requires { scheme.reads(at); }) return scheme.reads(at);
  else return static_cast<u32>(at.step % 2);
}
template <class Scheme>
MESHPOST_FN GridTime next_of(GridTime at) {
  if (at.stage + 1 < stages_of<Scheme>()) return {at.step, at.stage + 1};
  return {at.step + 1, 0};
}
// Members that are there but can't be called so would be taken for missing ones.
template <class Scheme>
inline constexpr bool reads_as_it_should = !requires {
  &Scheme::reads;
} || requires(Scheme const& scheme, GridTime at, u32& field) { field = scheme.reads(at); };
template <class Scheme, class T>
inline constexpr bool mirrors =
    requires(Scheme const& scheme, T value) { scheme.mirrored(value, u32{}, u32{}); };

}  // namespace detail

}  // namespace meshpost
