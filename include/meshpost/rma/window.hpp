#pragma once
#include "meshpost/base/span.hpp"
#include "meshpost/world/communicator.hpp"

#if !defined(__CUDACC_RTC__)
#include <chrono>
#include <optional>
#include <source_location>
#include <span>
#include <vector>
#endif

namespace meshpost {

class Rank;

/// One rank's part of a window that is not uniform: sized by rank, or memory of the user.
struct Part {
  void* data;
  u64 count;
};

/// The host of a process, for kernels that notify it: World::host() makes it.
struct HostId {
  u32 device = ~0u;  ///< the first of that process, which has its counters

  bool operator==(HostId const&) const = default;
};

/// A stream that is notified. It is known before it is made: the device's number in the world, and
/// the number that it is given there (StreamEndpoint).
struct StreamId {
  static constexpr u32 most = 8;  ///< of a device

  u32 device = ~0u;
  u32 number = 0;  ///< less than `most`

  bool operator==(StreamId const&) const = default;
};

/// The values with which a kernel finds any rank's part of a window and its counters.
struct WindowInfo {
  u32 world = 0;        ///< number of the World that made it
  u32 number = 0;       ///< of the window in its world; 0: none
  u32 whole_world = 0;  ///< `world` if over all ranks (the usual case), else 0
  Communicator communicator;
  u64 offset = 0;    ///< of the first local rank's part in the symmetric heap
  u64 pitch = 0;     ///< bytes from one local rank's part to the next one's, which may overlap
  u64 count = 0;     ///< elements of each part
  u64 parts = 0;     ///< offset of Part[world ranks]; 0: the window is uniform
  u64 counters = 0;  ///< offset of the first local rank's counters
  /// Offset of the host's, a word a tag, on each process's first device. Those of streams follow
  /// (stream_counters()), on each device.
  u64 host_counters = 0;
  u32 tags = 0;
  u32 counter_part = 0;                          ///< bytes of each of a rank's arrays of counters
  static constexpr u32 most_awaited = 1u << 30;  ///< notifications, by one wait

  /// The arrays lie behind each other and have a word a tag: counts, the last rank to raise each
  /// (raiser()), and on GPUs with lanes the counts from ranks of the same device.
  enum CounterArray : u32 { counts, raised_by, near_counts, counter_arrays };
  /// A stream's arrays of counters: raised by devices that load and store them, and what the stream
  /// has consumed. (Counts of hosts are in memory of the host.)
  enum StreamArray : u32 { raised, consumed, stream_arrays };
  /// Offset of one of them.
  MESHPOST_FN u64 stream_counters(u32 stream, StreamArray array) const {
    return host_counters + u64{counter_part} * (1 + stream * stream_arrays + array);
  }
  /// Bytes of the host's counters and those of streams.
  MESHPOST_FN u64 endpoint_bytes() const {
    return u64{counter_part} * (1 + StreamId::most * stream_arrays);
  }
  /// The word that names this rank as the last raiser. Its upper bit distinguishes it from counts:
  /// it stays when those are swept at the end of a run. The function is its own inverse. 0: nobody
  /// ever raised it.
  MESHPOST_FN static constexpr u32 raiser(u32 rank) { return ~rank; }
  /// Bytes from one local rank's counters to the next one's.
  MESHPOST_FN u32 counter_pitch() const { return counter_arrays * counter_part; }
  /// The word of the same tag in another array, from the one in `counts`.
  MESHPOST_FN static u32* beside(u32* counter, u32 part, CounterArray array) {
    return reinterpret_cast<u32*>(reinterpret_cast<char*>(counter) + array * part);
  }
};

template <class T>
class RemoteSpan;
template <class T>
struct RemoteStrided;

/// Memory that every rank of a communicator exposes to puts, with its own counters. A handle:
/// copies name the same window; kernels copy it. Made by World::window, valid until World::free or
/// the World's end.
template <class T>
class Window {
 public:
  Window() = default;
  MESHPOST_FN explicit Window(WindowInfo const& info) : info_(info) {}

  /// Elements from `offset` on of the part of rank `rank` of the window's communicator. Checked
  /// when used.
  MESHPOST_FN RemoteSpan<T> at(RankId rank, u64 offset = 0) const { return {info_, rank, offset}; }
  /// The calling rank's own part. Any thread may call it alone.
  MESHPOST_FN LocalSpan<T> local(Rank const& self) const;
  MESHPOST_FN WindowInfo const& info() const { return info_; }

#if !defined(__CUDACC_RTC__)
  /// Copies from the host into a rank's part (world rank), after the runs launched so far.
  /// Not collective. Thread-safe. \throws Error(bad_argument) naming the range and its limit
  void write(RankId rank, u64 offset, std::span<T const> source,
             std::source_location where = std::source_location::current()) const;
  /// Copies from a rank's part to the host, after the runs launched so far. Otherwise as write().
  void read(RankId rank, u64 offset, std::span<T> target,
            std::source_location where = std::source_location::current()) const;
  /// All of a rank's part.
  std::vector<T> read(RankId rank,
                      std::source_location where = std::source_location::current()) const;

  /// The part of a rank (of the world) of this process, in the addresses of its device: for work on
  /// streams of that device (StreamEndpoint). Not collective. Thread-safe. \throws
  /// Error(bad_argument) if there is no such rank here
  std::span<T> part(RankId rank) const;

  // The host as an endpoint that notifies and is notified. A notification of the host belongs to
  // the current run, or else to the next one. These functions work for any process, are not
  // collective, and are thread-safe.
  //
  // write(), read(), put_notify() and notify() take effect after the runs launched so far. If all
  // of these have Launch::with_host, they take effect at once. Then only notifications order what
  // the host and the kernel do.

  /// write(), then notify(): the rank that consumes the notification finds the bytes.
  /// \throws Error(bad_argument, misuse)
  void put_notify(RankId rank, u64 offset, std::span<T const> source, Tag tag,
                  std::source_location where = std::source_location::current()) const;
  /// Raises the counter for `tag` of a rank (of the world) by one. \throws Error(bad_argument,
  /// misuse)
  void notify(RankId rank, Tag tag,
              std::source_location where = std::source_location::current()) const;
  /// The same for a counter of a stream, at once, whatever runs. If the stream is to read what
  /// write() has written, this comes behind it. \throws Error(bad_argument, misuse, peer_lost)
  void notify(StreamId stream, Tag tag,
              std::source_location where = std::source_location::current()) const;
  /// Returns once ranks have notified this process's host `count` times with `tag` in this window
  /// (Rank::notify with World::host()), and consumes these notifications. read() then finds what
  /// such a rank has stored into its own part before. `deadline` is the time without a
  /// notification; 0: never; unset: the World's.
  /// \throws Error(deadline) saying how many have come; Error(bad_argument, misuse);
  /// Error(peer_lost); and the error of a run that failed meanwhile
  void wait(Tag tag, u32 count = 1,
            std::optional<std::chrono::milliseconds> deadline = std::nullopt,
            std::source_location where = std::source_location::current()) const;
#endif

 private:
  WindowInfo info_;
};

/// Elements of a rank's part of a window, which may be out of reach of loads and stores. Refers to
/// the Window that made it.
template <class T>
class RemoteSpan {
 public:
  /// From `offset` on to the end of the rank's part; subspan() ends it earlier.
  MESHPOST_FN RemoteSpan(WindowInfo const& window, RankId rank, u64 offset)
      : window_(&window), rank_(rank), offset_(offset) {}

  /// `count` elements from `offset` on. If they leave this span, the operation that uses them
  /// fails.
  MESHPOST_FN RemoteSpan subspan(u64 offset, u64 count = to_the_end) const {
    bool const inside = count_ == to_the_end ||
                        (offset <= count_ && (count == to_the_end || count <= count_ - offset));
    bool const fits = inside && offset_ != beyond && offset < beyond - offset_;  // nor wraps round
    u64 const rest = count_ == to_the_end ? to_the_end : count_ - offset;
    RemoteSpan part = *this;
    part.offset_ = fits ? offset_ + offset : beyond;
    part.count_ = count == to_the_end ? rest : count;
    return part;
  }
  /// The elements that `layout` names, for puts of strided pieces.
  MESHPOST_FN RemoteStrided<T> strided(StridedLayout const& layout) const {
    return {*this, layout};
  }
  MESHPOST_FN WindowInfo const& window() const { return *window_; }
  MESHPOST_FN RankId rank() const { return rank_; }
  MESHPOST_FN u64 offset() const { return offset_; }
  /// Elements, or to_the_end.
  MESHPOST_FN u64 count() const { return count_; }

  static constexpr u64 to_the_end = ~u64{0};
  static constexpr u64 beyond = ~u64{0};  ///< offset of a subspan that left its span

 private:
  WindowInfo const* window_;
  RankId rank_;
  u64 offset_, count_ = to_the_end;
};

/// Elements of a RemoteSpan that need not lie side by side; checked when used.
template <class T>
struct RemoteStrided {
  RemoteSpan<T> span;
  StridedLayout layout;
};

}  // namespace meshpost
