#pragma once
#include <deque>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// Where this process has put bytes in another's memory, by messages that are not known to have
/// been carried out there. A plain value. Of very many it knows less: one range around all.
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
  /// All messages before this one have been carried out. Older news than is known says nothing.
  void delivered_before(u32 sequence);
  void clear() { entries_.clear(); }
  /// What has put bytes into the range; a write, if several have.
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
