#pragma once
#include "meshpost/device/block.hpp"
#include "meshpost/device/stream_operations.hpp"

// An exchange by a plan, as a stream carries it out (Stream::gather, Stream::scatter). The part
// array makes these values. src/device/cuda/exchange_kernels.cpp and src/device/cpu/stream.cpp
// carry them out.
//
// clang-format off
// In each step a stream gathers elements straight into the other devices' memory for arrivals, and
// raises a counter of each device's stream. That stream waits for the counters of all its senders,
// and scatters what has come to its places.
//  1. The memory for arrivals has two halves, for even steps and for odd ones. Each stream counts
//     its steps in its device's memory, and the kernel that scatters adds to the count. So nothing
//     depends on numbers that the host knows, and a captured graph may be replayed.
//  2. A stream has one counter for each sender. It consumes one notification of each in each step.
//     Notifications of one sender come in the order of its steps, so this is the step's own.
//  3. The elements of step k are written over those of step k - 2. If the receiver q sends to the
//     sender p as well, p may do this without asking:
//       q scatters step k - 2, then gathers step k - 1 (its stream's order), then notifies p.
//       p consumes that when it scatters step k - 1, then gathers step k (its stream's order).
//     So q's loads of step k - 2 happen before p's stores of step k.
//  4. Otherwise q raises a counter of p (a credit) when it has scattered a step, behind its loads.
//     p consumes one credit before it gathers. The counter begins with two, for steps 0 and 1.
// Raising and acquiring: src/device/cuda/stream_kernels.cpp.
// Nobody waits for ever if all streams gather and scatter in turn: step k waits for nothing that
// comes later in the order of any stream than the scattering of step k - 1.
// clang-format on

namespace meshpost {

/// Values in a device's memory. If they are few, they are here as well, so a kernel gets them with
/// its arguments.
template <class T>
struct StreamList {
  static constexpr u32 few = 4;

  T const* all = nullptr;
  u32 count = 0;
  T first[few] = {};

  MESHPOST_FN T const& operator[](u32 i) const { return count <= few ? first[i] : all[i]; }
};

/// Some of the elements that are sent: those of one receiver.
struct StreamPiece {
  static constexpr u64 listed = ~u64{0};

  u64 begin = 0, end = 0;  ///< numbers, among all that the device sends
  u64 source = listed;     ///< place of the first, if they are consecutive
  char* target = nullptr;  ///< place of its first element in even steps
  u64 half = 0;            ///< bytes from there to its place in odd steps
  u32* counter = nullptr;  ///< raised when the piece is there; null: none
};

/// Copies of elements to the places where others need them.
struct StreamGather {
  void const* source = nullptr;
  u64 element = 1;  ///< bytes of each
  u32 unit = 1;     ///< bytes that can be copied at once: 1, 2, 4, 8 or 16
  u64 count = 0;    ///< elements
  u64 const* places =
      nullptr;  ///< in the source, in the device's memory; null: no piece has a list
  StreamList<StreamPiece> pieces{};
  StreamList<AwaitedCounter> credits{};  ///< awaited before
  u32 const* step = nullptr;             ///< steps that are over
};

/// Operations that combine a value with one that comes.
enum class StreamCombine : u32 { replace, sum, minimum, maximum };

/// A type of numbers, for these. `none`: elements can only be replaced.
enum class StreamNumber : u32 {
  none,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64
};

/// Waits for elements, and takes them to their places.
struct StreamScatter {
  char const* arrivals = nullptr;  ///< of even steps
  u64 half = 0;                    ///< bytes from there to those of odd steps
  void* target = nullptr;
  u64 element = 1;  ///< bytes of each
  u32 unit = 1;     ///< bytes that can be copied at once: 1, 2, 4, 8 or 16
  u64 count = 0;    ///< elements; with a list, places
  u64 first = 0;    ///< place of the first element, if there is no list
  /// Lists in the device's memory: each place once, where its arrivals begin, and these.
  u64 const* places = nullptr;
  u64 const* begins = nullptr;
  u64 const* numbers = nullptr;
  StreamCombine combine = StreamCombine::replace;
  StreamNumber number = StreamNumber::none;
  StreamList<AwaitedCounter> awaited{};
  StreamList<u32*> credits{};  ///< raised behind it
  u32* step = nullptr;         ///< becomes one more
};

/// How it would carry out a gather or scatter, for people.
struct StreamExchangeWay {
  u32 blocks = 0;      ///< of the kernel; 0: the stream's thread does it
  bool fused = false;  ///< the same kernel waits, rather than one before it
};

namespace exchange {

struct alignas(16) Unit16 {
  u64 low, high;
};

/// Calls work(V{}) with a type of `unit` bytes.
template <class Work>
void with_unit(u32 unit, Work&& work) {
  switch (unit) {
    case 16: return work(Unit16{});
    case 8: return work(u64{});
    case 4: return work(u32{});
    case 2: return work(static_cast<unsigned short>(0));
    default: return work(static_cast<unsigned char>(0));
  }
}

/// A unit of an element.
struct UnitOf {
  u64 number;  ///< of the element
  u64 rest;    ///< of the unit in it
};
MESHPOST_FN inline UnitOf unit_of(u64 unit, u64 units) {
  if (units == 1) return {unit, 0};
  u64 const number = unit / units;
  return {number, unit - number * units};
}

/// A thread's share of a step.
struct Share {
  u32 odd;  ///< 1 if the step is
  u64 thread, threads;
};

/// One thread's share of a scatter that replaces. If several elements come to a place, the last one
/// stays.
template <class V>
MESHPOST_FN void replace(StreamScatter const& all, Share const& share) {
  char const* const come = all.arrivals + share.odd * all.half;
  if (!all.places)
    return memory::copy(static_cast<char*>(all.target) + all.first * all.element, come,
                        all.count * all.element, static_cast<u32>(share.thread),
                        static_cast<u32>(share.threads));
  u64 const units = all.element / sizeof(V);
  auto* const target = static_cast<V*>(all.target);
  auto const* const from = reinterpret_cast<V const*>(come);
  for (u64 i = share.thread; i < all.count * units; i += share.threads) {
    auto const [place, rest] = unit_of(i, units);
    target[all.places[place] * units + rest] =
        from[all.numbers[all.begins[place + 1] - 1] * units + rest];
  }
}

/// Sums of integers wrap.
template <class T>
MESHPOST_FN T sum_of(T old, T come) {
  constexpr bool whole = T(1) / T(2) == T(0);
  if constexpr (whole) return static_cast<T>(static_cast<u64>(old) + static_cast<u64>(come));
  else return old + come;
}

template <class T>
MESHPOST_FN T combined(StreamCombine combine, T old, T come) {
  switch (combine) {
    case StreamCombine::sum: return sum_of(old, come);
    case StreamCombine::minimum: return come < old ? come : old;
    case StreamCombine::maximum: return old < come ? come : old;
    default: return come;
  }
}

/// One thread's share of a scatter that combines numbers: one after the other, in the order in
/// which their numbers ascend, which is that of their senders.
template <class T>
MESHPOST_FN void combine(StreamScatter const& all, Share const& share) {
  auto* const target = static_cast<T*>(all.target);
  auto const* const come = reinterpret_cast<T const*>(all.arrivals + share.odd * all.half);
  for (u64 i = share.thread; i < all.count; i += share.threads) {
    if (!all.places) {
      target[all.first + i] = combined(all.combine, target[all.first + i], come[i]);
      continue;
    }
    T value = target[all.places[i]];
    for (u64 k = all.begins[i]; k < all.begins[i + 1]; ++k)
      value = combined(all.combine, value, come[all.numbers[k]]);
    target[all.places[i]] = value;
  }
}

/// Calls work(T{}) with that type of numbers.
template <class Work>
void with_number(StreamNumber number, Work&& work) {
  switch (number) {
    case StreamNumber::int8: return work(static_cast<signed char>(0));
    case StreamNumber::uint8: return work(static_cast<unsigned char>(0));
    case StreamNumber::int16: return work(static_cast<short>(0));
    case StreamNumber::uint16: return work(static_cast<unsigned short>(0));
    case StreamNumber::int32: return work(0);
    case StreamNumber::uint32: return work(0u);
    case StreamNumber::int64: return work(static_cast<i64>(0));
    case StreamNumber::uint64: return work(static_cast<u64>(0));
    case StreamNumber::float32: return work(0.0f);
    case StreamNumber::float64: return work(0.0);
    case StreamNumber::none: return;
  }
}

/// Units that a gather or scatter copies, and so about the number of its loads.
inline u64 units(StreamGather const& all) { return all.count * (all.element / all.unit); }
inline u64 units(StreamScatter const& all) {
  if (all.combine != StreamCombine::replace) return all.count;
  return all.places ? all.count * (all.element / all.unit) : (all.count * all.element + 15) / 16;
}

}  // namespace exchange
}  // namespace meshpost
