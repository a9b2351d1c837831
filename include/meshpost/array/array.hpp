#pragma once
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "meshpost/array/coherence.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/copy/copy.hpp"

namespace meshpost {

template <class T>
class Array;

/// A live access to an array at one place. Movable. Until it ends, its memory stays where it is
/// and is not overwritten by the library, even if the array is destroyed. It ends by release(), by
/// its destructor, or by release_after().
///
/// Asynchronous work may still use the memory when the function returns that has started it. Then
/// move the access to where the end of the work is noticed, such as Stream::call, or use
/// release_after(). Any thread may end it.
template <class T>
class Access {
 public:
  /// Null if the array is empty. Only code that runs at the place may use the pointer, and only
  /// while the access is live. So it can't be taken from a temporary access.
  T* data() const& { return static_cast<T*>(live_.data()); }
  T* data() const&& = delete;
  std::size_t size() const { return live_.size() / sizeof(T); }
  std::span<T> span() const& { return {data(), size()}; }
  std::span<T> span() const&& = delete;
  /// For code of the host: `for (auto& element : array.write())` is live until the loop ends.
  T& operator[](u64 index) const { return static_cast<T*>(live_.data())[index]; }
  T* begin() const { return static_cast<T*>(live_.data()); }
  T* end() const { return begin() + size(); }
  /// The place whose memory it is: the place that was asked for, or one whose memory this place can
  /// use. \throws Error(misuse) if the access has ended
  Place const& memory() const { return live_.context("memory of an access").place(); }
  /// True until it has ended, or was moved from.
  bool live() const { return live_.live(); }
  void release() noexcept { live_.release(); }
  /// The access ends when `event` is done, such as Stream::record() behind the work that uses the
  /// memory. This call returns at once. If one of the two writes, later accesses and prefetches
  /// wait for the event, also those to the same memory. So does the array's destructor. If the
  /// event fails, the first call that waits for it throws, and the access has ended. An Event of
  /// your own: done() and the destructor are called while a lock of the array is held, wait() is
  /// not.
  /// \throws Error(misuse) if the access has ended
  void release_after(std::shared_ptr<Event> event) { live_.release_after(std::move(event)); }

 protected:
  explicit Access(detail::LiveAccess live) : live_(std::move(live)) {}

 private:
  detail::LiveAccess live_;
};

template <class T>
class ReadAccess : public Access<T const> {
 public:
  /// \throws as Array::read
  explicit ReadAccess(Array<T> const& array, At const& at = {},
                      std::source_location where = std::source_location::current());
};

template <class T>
class WriteAccess : public Access<T> {
 public:
  /// \throws as Array::write
  explicit WriteAccess(Array<T>& array, At const& at = {},
                       std::source_location where = std::source_location::current());

 protected:
  explicit WriteAccess(detail::LiveAccess live) : Access<T>(std::move(live)) {}
  friend Array<T>;
};

/// A vector of elements that may be valid in several places at once: in host memory, in pinned
/// memory, in the memory of devices. An access at a place brings the array up to date there, if it
/// isn't: by one copy, from the place with the shortest way. A write access makes all other places
/// invalid. Memory is allocated at the first access that needs it, and kept.
///
/// Any number of read accesses may be live at once. While a write access is live, there is no other
/// one, except read accesses to the same memory: so y = a*y + x works with x and y the same. (The
/// caller orders what they do.) Accesses that exclude each other are an error. Only accesses that
/// end by an event (Access::release_after) are waited for.
///
/// Thread-safe, but for the move and the destructor. Accesses that copy take turns, others go
/// ahead. An access that fails leaves the array as it was. If accesses are live when the array is
/// destroyed, the memory is freed later, by the next call for any array after they have ended.
/// Not inside kernels, and not after fork().
///
/// Source: LAMA's LAMAArray.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>,
                "an Array's elements are copied between memories as bytes: T must be trivially "
                "copyable");
  static_assert(!std::is_const_v<T>, "elements of an Array are written: T must not be const");
  static_assert(alignof(T) <= 64, "memory of devices is aligned to 64 bytes or more");

 public:
  using value_type = T;

  /// Valid nowhere until it is written. `name`: for messages. Nothing is allocated.
  /// \throws Error(bad_argument) if so many bytes can't be counted
  explicit Array(u64 size = 0, std::string name = {})
      : bytes_(size, Bytes{sizeof(T)}, std::move(name)) {}
  /// Copies the elements to the host's memory.
  explicit Array(std::span<T const> elements, std::string name = {})
      : Array(elements.size(), std::move(name)) {
    auto const all = write_only();
    copy(all.span(), elements);
  }

  u64 size() const { return bytes_.elements(); }

  /// To read the elements at that place.
  /// \throws Error(misuse) if a write access to other memory is live, naming both places and where
  /// both were taken, or if the array was never written; Error(out_of_memory, no_route,
  /// device_failed) and Error(bad_argument) for a place that there is not
  ReadAccess<T> read(At const& at = {},
                     std::source_location where = std::source_location::current()) const {
    return ReadAccess<T>(*this, at, where);
  }
  /// To change the elements at that place: it has the old ones.
  /// \throws as read(), and Error(misuse) if any write access is live, or a read access to other
  /// memory
  WriteAccess<T> write(At const& at = {},
                       std::source_location where = std::source_location::current()) {
    return WriteAccess<T>(*this, at, where);
  }
  /// To write all elements at that place. Nothing is copied: it has any values before.
  /// \throws as write(), but may be the first
  WriteAccess<T> write_only(At const& at = {},
                            std::source_location where = std::source_location::current()) {
    return WriteAccess<T>(bytes_.access(at, detail::AccessMode::write_only, where));
  }
  /// Begins to bring the array up to date at that place, and returns. A stream can wait for the
  /// event. Accesses there wait for it, and so does each later write access. If the copy fails, the
  /// next access there throws. \throws as read()
  std::shared_ptr<Event> prefetch(
      At const& at, std::source_location where = std::source_location::current()) const {
    return bytes_.prefetch(at, where);
  }

  /// Frees the memory that the array has at that place.
  /// \throws Error(misuse) if an access to that memory is live, or it is the only valid one
  void drop(At const& at, std::source_location where = std::source_location::current()) {
    bytes_.drop(at, where);
  }
  /// Changes the number of elements. If more memory is needed and the contents are kept, they are
  /// kept at one place. \throws Error(misuse) if an access is live; as read()
  void resize(u64 size, Contents contents,
              std::source_location where = std::source_location::current()) {
    bytes_.resize(size, contents, where);
  }

  /// True if a read access there would copy nothing.
  bool valid_at(At const& at) const { return bytes_.valid_at(at); }
  /// The copies made so far, by pair of places. A prefetch counts when it is done.
  std::vector<ArrayCopies> copies() const { return bytes_.copies(); }
  /// For people: the places with memory, which are valid, live accesses, copies and their bytes.
  std::string explain() const { return bytes_.explain(); }

 private:
  friend ReadAccess<T>;
  friend WriteAccess<T>;

  detail::CoherentBytes bytes_;
};

template <class T>
ReadAccess<T>::ReadAccess(Array<T> const& array, At const& at, std::source_location where)
    : Access<T const>(array.bytes_.access(at, detail::AccessMode::read, where)) {}

template <class T>
WriteAccess<T>::WriteAccess(Array<T>& array, At const& at, std::source_location where)
    : Access<T>(array.bytes_.access(at, detail::AccessMode::write, where)) {}

}  // namespace meshpost
