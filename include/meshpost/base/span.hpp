#pragma once
#include "meshpost/base/strided.hpp"

namespace meshpost {

template <class T>
struct LocalStrided;

/// Memory that the calling rank can load and store, with its bounds.
///
/// A subspan that leaves its bounds is not cut: it becomes invalid, and an operation that gets it
/// fails. Single elements ([]) are not checked.
template <class T>
class LocalSpan {
 public:
  LocalSpan() = default;
  MESHPOST_FN constexpr LocalSpan(T* data, u64 size) : data_(data), size_(size) {}
  /// A mutable span converts to a const one.
  template <class U>
    requires(same<T, U const>)
  MESHPOST_FN constexpr LocalSpan(LocalSpan<U> other) : data_(other.data()), size_(other.size()) {}

  MESHPOST_FN constexpr T* data() const { return data_; }
  MESHPOST_FN constexpr u64 size() const { return size_; }
  MESHPOST_FN constexpr Bytes bytes() const { return Bytes{size_ * sizeof(T)}; }
  MESHPOST_FN constexpr T& operator[](u64 i) const { return data_[i]; }
  MESHPOST_FN constexpr T* begin() const { return data_; }
  MESHPOST_FN constexpr T* end() const { return data_ + size_; }
  MESHPOST_FN constexpr bool valid() const { return size_ != invalid_size; }

  /// `count` elements from `offset` on.
  MESHPOST_FN constexpr LocalSpan subspan(u64 offset, u64 count) const {
    bool const fits = valid() && offset <= size_ && count <= size_ - offset;
    return fits ? LocalSpan(data_ + offset, count) : LocalSpan(data_, invalid_size);
  }
  /// All elements from `offset` on.
  MESHPOST_FN constexpr LocalSpan subspan(u64 offset) const {
    bool const fits = valid() && offset <= size_;
    return fits ? LocalSpan(data_ + offset, size_ - offset) : LocalSpan(data_, invalid_size);
  }

  /// The elements that `layout` names, for puts of strided pieces.
  MESHPOST_FN constexpr LocalStrided<T> strided(StridedLayout const& layout) const {
    return {*this, layout};
  }

  static constexpr u64 invalid_size = ~u64{0};

 private:
  T* data_ = nullptr;
  u64 size_ = 0;
};

/// Elements of a LocalSpan that need not lie side by side. Checked when used.
template <class T>
struct LocalStrided {
  LocalSpan<T> span;
  StridedLayout layout;
};

}  // namespace meshpost
