#pragma once
#include <deque>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// The places in another process's memory where this process has put bytes, by messages not known
/// to be carried out there. A plain value. If there are very many, it keeps one range around all.
class Undelivered {
 public:
  static constexpr u64 most = 4096;
  struct Range {
    u32 device = 0;
    u64 offset = 0, bytes = 0;
  };
  enum class By : u32 { nobody, message, write };

  /// In the order of their sequence numbers, which wrap.
  void add(u32 sequence, Range const& range, By by);
  /// All messages before this one have been carried out. Ignored if it is older than what is known.
  void delivered_before(u32 sequence);
  void clear() { entries_.clear(); }
  /// The way by which bytes were put into the range; `write` if there are several.
  By in(Range const& range) const;

 private:
  struct Entry {
    u32 sequence;
    Range range;
    By by;
  };
  void coarsen();
  std::deque<Entry> entries_;
};

}  // namespace meshpost::detail
