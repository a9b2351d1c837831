#pragma once
#include <atomic>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/device/device.hpp"

namespace meshpost {

/// One piece of a copy: `size` bytes from `source` to `target`, in any places.
struct Segment {
  void* target = nullptr;
  void const* source = nullptr;
  Bytes size{};
};

/// Rows of bytes at regular distances, in up to three dimensions. There are `slices` slices,
/// `slice_pitch` bytes apart. Each has `rows` rows of `width` bytes, `row_pitch` bytes apart.
struct BlockShape {
  Bytes width{};
  u64 rows = 1, slices = 1;
};
struct Pitch {
  Bytes row{}, slice{};
};

/// The start of a copy.
struct CopyOptions {
  /// It begins after the work in these streams, and their later work begins after it. If streams of
  /// GPUs are among them, copies from or to pageable memory return only when they are done. Such a
  /// stream may not wait for the host.
  std::vector<Stream*> streams{};
};

/// Treatment of copies of a batch that touch the same bytes.
enum class Overlap { order, refuse };

struct BatchOptions {
  Overlap overlap =
      Overlap::order;  ///< order: as if one came after the other. refuse: an error that names both
  std::vector<Stream*> streams{};
};

/// A copy in progress. Movable. If it is destroyed before wait(), it waits and reports an error as
/// a warning. Several threads may use it at once. \throws Error(misuse) if it was moved from;
/// inside a kernel; and after fork()
class Copy {
 public:
  struct State;
  explicit Copy(std::shared_ptr<State> state);
  ~Copy();
  Copy(Copy&& other) noexcept : state_(std::move(other.state_)), heard_(other.heard_.load()) {}
  Copy& operator=(Copy&&) = delete;  // it could not keep the copy in progress
  Copy(Copy const&) = delete;
  Copy& operator=(Copy const&) = delete;

  /// Returns when all bytes have arrived. \throws Error(device_failed), at each call
  void wait();
  bool done() const;
  /// Done when the bytes have arrived; a stream can wait for it.
  std::shared_ptr<Event> event() const;

 private:
  State& state(char const* operation) const;
  std::shared_ptr<State> state_;
  std::atomic<bool> heard_{false};  // the caller knows the result
};

/// Copies `size` bytes between any two places: pageable, pinned, or a device's memory, of any
/// devices. It finds out which memory the two pointers point to. Returns when all bytes have
/// arrived. 0 bytes are legal, with any pointers. Thread-safe, except inside kernels and after
/// fork().
///
/// As with memcpy, the system ends the process by a signal if the target is mapped read-only
/// (SIGSEGV), or if a mapped file has become shorter (SIGBUS). A check beforehand would take longer
/// than most copies.
/// \throws Error(bad_argument) for null or freed memory, for more bytes than an allocation holds
/// and for source and target that overlap; Error(no_route); Error(device_failed);
/// Error(out_of_memory) if the system gives no thread to copy; Error(misuse) inside a kernel and
/// after fork()
void copy(void* target, void const* source, Bytes size,
          std::source_location where = std::source_location::current());

/// The same, but returns at once, after all checks. Source and target must not change until the
/// copy is done.
Copy copy_async(void* target, void const* source, Bytes size, CopyOptions const& options = {});

/// Copies a block of rows; each side has its own pitch. \throws also Error(bad_argument) if a pitch
/// is less than the size of its row or slice
Copy copy_async(void* target, Pitch target_pitch, void const* source, Pitch source_pitch,
                BlockShape shape, CopyOptions const& options = {});

/// Copies a list. Independent copies run at once. \throws also Error(bad_argument) for copies that
/// overlap, if they are refused
Copy copy_batch(std::span<Segment const> segments, BatchOptions const& options = {});

/// The same for elements. \throws also Error(bad_argument) if the spans differ in length
template <class T>
void copy(std::span<T> target, std::type_identity_t<std::span<T const>> source,
          std::source_location where = std::source_location::current()) {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
  if (target.size() != source.size())
    throw Error(Kind::bad_argument, "copy of spans",
                "the target has " + std::to_string(target.size()) + " elements, the source " +
                    std::to_string(source.size()),
                "give spans of one length");
  copy(target.data(), source.data(), Bytes{target.size_bytes()}, where);
}

/// Chooses the devices whose places copies know. Call it before the first copy. Otherwise they are
/// the devices that MESHPOST_DEVICES names. Calibrates the machine if it was never measured.
/// Thread-safe.
void use_devices_for_copies(std::vector<std::shared_ptr<Device>> const& devices);

}  // namespace meshpost
