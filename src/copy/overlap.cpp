#include "copy/overlap.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace meshpost::copying {
namespace {

constexpr u32 none = Dependence::none;

struct Range {
  u64 begin, end;  // addresses
};
Range read_by(Segment const& segment) {
  auto const begin = reinterpret_cast<u64>(segment.source);
  return {begin, begin + segment.size};
}
Range written_by(Segment const& segment) {
  auto const begin = reinterpret_cast<u64>(segment.target);
  return {begin, begin + segment.size};
}

// The ranges of a list's entries, some of which are in the set at a time. Finds one that overlaps a
// given range. The entries are sorted by their beginnings, under a tree of the largest ends. Those
// that begin before the given range ends come first. One of them overlaps it if the largest of
// their ends is behind its beginning.
class Ranges {
 public:
  explicit Ranges(std::vector<Range> all)
      : all_(std::move(all)),
        order_(all_.size()),
        place_(all_.size()),
        leaves_(std::bit_ceil(std::max<u64>(all_.size(), 1))),
        ends_(2 * leaves_, 0) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::ranges::sort(order_, {}, [&](u32 entry) { return all_[entry].begin; });
    for (u32 i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
  }
  void put_in(u32 entry) { set(entry, all_[entry].end); }
  void take_out(u32 entry) { set(entry, 0); }
  // An entry of the set that overlaps the range; none if there is none.
  u32 find(Range const& range) const {
    auto const behind = std::ranges::lower_bound(order_, range.end, {},
                                                 [&](u32 entry) { return all_[entry].begin; });
    return find(1, 0, leaves_, static_cast<u64>(behind - order_.begin()), range.begin);
  }

 private:
  void set(u32 entry, u64 end) {
    u64 node = leaves_ + place_[entry];
    for (ends_[node] = end; node > 1;) {
      node /= 2;
      ends_[node] = std::max(ends_[2 * node], ends_[2 * node + 1]);
    }
  }
  // Finds one that ends after `begin`, among the places from `from` on below `node` and before
  // `behind`. Both halves are searched only if `behind` cuts the first, once in each level.
  u32 find(u64 node, u64 from, u64 count, u64 behind, u64 begin) const {
    if (from >= behind || ends_[node] <= begin) return none;
    if (count == 1) return order_[from];
    u32 const found = find(2 * node, from, count / 2, behind, begin);
    return found != none ? found : find(2 * node + 1, from + count / 2, count / 2, behind, begin);
  }

  std::vector<Range> all_;          // by entry
  std::vector<u32> order_, place_;  // entries by beginning; and each entry's position there
  u64 leaves_;
  std::vector<u64> ends_;  // node i has the halves 2 i and 2 i + 1; 0: the set has none there
};

// The ranges that a list's entries so far read and write.
class Touched {
 public:
  explicit Touched(std::span<Segment const> all)
      : all_(all), read_(ranges(all, read_by)), written_(ranges(all, written_by)) {}
  void put_in(u32 entry) {
    read_.put_in(entry);
    written_.put_in(entry);
  }
  void take_out(u32 entry) {
    read_.take_out(entry);
    written_.take_out(entry);
  }
  u32 find_met_by(u32 entry) const {
    u32 met = written_.find(read_by(all_[entry]));
    if (met == none) met = written_.find(written_by(all_[entry]));
    if (met == none) met = read_.find(written_by(all_[entry]));
    return met;
  }

 private:
  static std::vector<Range> ranges(std::span<Segment const> all, Range (*of)(Segment const&)) {
    std::vector<Range> found(all.size());
    std::ranges::transform(all, found.begin(), of);
    return found;
  }
  std::span<Segment const> all_;
  Ranges read_, written_;
};

}  // namespace

std::vector<Dependence> dependences(std::span<Segment const> segments) {
  std::vector<Dependence> all(segments.size());
  Touched before(segments), unawaited(segments);
  for (u32 i = 0; i < segments.size(); ++i) {
    if (segments[i].size == 0) continue;
    all[i].meets = before.find_met_by(i);
    for (u32 met = unawaited.find_met_by(i); met != none; met = unawaited.find_met_by(i)) {
      all[i].after.push_back(met);
      unawaited.take_out(met);
    }
    before.put_in(i);
    unawaited.put_in(i);
  }
  return all;
}

}  // namespace meshpost::copying
