#pragma once
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "meshpost/array/context.hpp"

// The part of Array<T> that doesn't depend on T.

namespace meshpost {

/// Copies that an array has made from one place to another.
struct ArrayCopies {
  std::string source, target;  ///< names of contexts
  u64 count = 0;
  Bytes bytes{};  ///< of all of them together

  bool operator==(ArrayCopies const&) const = default;
};

/// The contents of an array after a change of its size.
enum class Contents {
  keep,    ///< elements that the old and the new size share; others are undefined
  discard  ///< the array is valid nowhere until it is written
};

namespace detail {

enum class AccessMode {
  read,
  write,      ///< the old contents are needed
  write_only  ///< all of it will be written
};

/// A live access. It ends when it is released or destroyed.
class LiveAccess {
 public:
  struct Entry;  // of the library
  struct State;
  LiveAccess(std::shared_ptr<State> state, Entry* entry);
  LiveAccess(LiveAccess&& other) noexcept;
  LiveAccess& operator=(LiveAccess&& other) noexcept;
  ~LiveAccess() { release(); }

  void* data() const { return data_; }
  Bytes size() const { return size_; }
  /// \throws Error(misuse) if it has ended
  Context const& context(char const* operation) const;
  bool live() const { return entry_ != nullptr; }
  void release() noexcept;
  void release_after(std::shared_ptr<Event> event);

 private:
  std::shared_ptr<State> state_;
  Entry* entry_ = nullptr;
  void* data_ = nullptr;
  Bytes size_{};
};

/// Bytes that are valid in several places at once. Thread-safe.
class CoherentBytes {
 public:
  CoherentBytes(u64 elements, Bytes element, std::string name);
  CoherentBytes(CoherentBytes&&) noexcept = default;
  CoherentBytes& operator=(CoherentBytes&& other) noexcept;
  ~CoherentBytes();

  LiveAccess access(At const& at, AccessMode mode, std::source_location where) const;
  std::shared_ptr<Event> prefetch(At const& at, std::source_location where) const;
  void drop(At const& at, std::source_location where);
  void resize(u64 elements, Contents contents, std::source_location where);
  u64 elements() const;
  bool valid_at(At const& at) const;
  std::vector<ArrayCopies> copies() const;
  std::string explain() const;

 private:
  LiveAccess::State& state() const;
  std::shared_ptr<LiveAccess::State> state_;
};

}  // namespace detail
}  // namespace meshpost
