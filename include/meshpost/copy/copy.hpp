#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/device/device.hpp"

namespace meshpost {

/// One piece of a copy: `size` bytes from `source` to `target`, in whatever places these live.
struct Segment {
  void* target = nullptr;
  void const* source = nullptr;
  Bytes size{};
};

/// Rows of bytes at regular distances, in up to three dimensions: `rows` rows of `width` bytes,
/// `row_pitch` bytes apart, in each of `slices` slices `slice_pitch` bytes apart.
struct BlockShape {
  Bytes width{};
  u64 rows = 1, slices = 1;
};
struct Pitch {
  Bytes row{}, slice{};
};

/// When a copy begins.
struct CopyOptions {
  /// After what these hold; they go on after the copy. Among them streams of GPUs: then copies from
  /// or to pageable memory return when they are done, for such a stream may not wait for the host.
  std::vector<Stream*> streams{};
};

/// What becomes of copies of a batch that touch the same bytes.
enum class Overlap { order, refuse };

struct BatchOptions {
  Overlap overlap =
      Overlap::order;  ///< as if one came after the other, or an error that names both
  std::vector<Stream*> streams{};
};

/// A copy under way. Movable. If it is destroyed before wait(), it waits and reports an error as a
/// warning. Several threads may ask it at once. \throws Error(misuse) where nothing is left to ask,
/// for it was moved from; inside a kernel; and after fork()
class Copy {
 public:
  struct State;
  explicit Copy(std::shared_ptr<State> state);
  ~Copy();
  Copy(Copy&& other) noexcept : state_(std::move(other.state_)), heard_(other.heard_.load()) {}
  Copy& operator=(Copy&&) = delete;  // what would become of the one under way?
  Copy(Copy const&) = delete;
  Copy& operator=(Copy const&) = delete;

  /// Returns when all bytes have arrived. \throws Error(device_failed) as often as it is asked
  void wait();
  bool done() const;
  /// Done when the bytes have arrived; a stream can wait for it.
  std::shared_ptr<Event> event() const;

 private:
  State& state(char const* operation) const;
  std::shared_ptr<State> state_;
  std::atomic<bool> heard_{false};  // the caller knows how it ended
};

/// Copies `size` bytes between any two places: pageable, pinned, or a device's memory, of any
/// devices. Where the two pointers point is found out. Returns when all bytes have arrived. 0 bytes
/// are legal, with any pointers. Thread-safe, but for calls inside kernels and after fork().
///
/// As with memcpy, the system ends the process by a signal if the target is mapped read-only
/// (SIGSEGV), or if a file is mapped that has become shorter (SIGBUS): finding out beforehand takes
/// longer than most copies.
/// \throws Error(bad_argument) for null or freed memory, for more bytes than an allocation holds
/// and for source and target that overlap; Error(no_route); Error(device_failed);
/// Error(out_of_memory) where the system gives no thread to copy; Error(misuse) inside a kernel
/// and after fork()
void copy(void* target, void const* source, Bytes size);

/// The same, but returns at once; both must stay as they are until the copy is done. Checks are
/// made before it returns.
Copy copy_async(void* target, void const* source, Bytes size, CopyOptions const& options = {});

/// Copies a block of rows; each side has a pitch of its own. \throws also Error(bad_argument) if a
/// pitch is less than what it steps over
Copy copy_async(void* target, Pitch target_pitch, void const* source, Pitch source_pitch,
                BlockShape shape, CopyOptions const& options = {});

/// Copies a list. Independent copies run at once. \throws also Error(bad_argument) for copies that
/// overlap, if they are refused
Copy copy_batch(std::span<Segment const> segments, BatchOptions const& options = {});

/// The same of elements. \throws also Error(bad_argument) if the spans differ in length
template <class T>
void copy(std::span<T> target, std::type_identity_t<std::span<T const>> source) {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
  if (target.size() != source.size())
    throw Error(Kind::bad_argument, "copy of spans",
                "the target has " + std::to_string(target.size()) + " elements, the source " +
                    std::to_string(source.size()),
                "give spans of one length");
  copy(target.data(), source.data(), Bytes{target.size_bytes()});
}

/// Chooses the devices whose places copies know, before the first copy; else those that
/// MESHPOST_DEVICES names. Calibrates the machine if it was never seen. Thread-safe.
void use_devices_for_copies(std::vector<std::shared_ptr<Device>> const& devices);

}  // namespace meshpost
