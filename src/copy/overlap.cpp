#include "copy/overlap.hpp"

#include <algorithm>
#include <map>

namespace meshpost::copying {
namespace {

constexpr u32 nobody = ~0u;

// Who touched these bytes last: one that wrote, and those that have read since.
struct Cell {
  u64 end = 0;
  u32 writer = nobody;
  std::vector<u32> readers;
};

// Addresses that were touched so far, in cells that don't overlap.
class Touched {
 public:
  void read(u64 begin, u64 end, u32 who, std::vector<u32>& after) {
    for_cells(begin, end, [&](Cell& cell) {
      if (cell.writer != nobody) after.push_back(cell.writer);
      cell.readers.push_back(who);
    });
  }
  void write(u64 begin, u64 end, u32 who, std::vector<u32>& after) {
    for_cells(begin, end, [&](Cell& cell) {
      if (cell.writer != nobody) after.push_back(cell.writer);
      after.insert(after.end(), cell.readers.begin(), cell.readers.end());
    });
    // One cell from here on: this entry comes after all who touched it.
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
    cells_[begin] = {end, who, {}};
  }

 private:
  // Makes `at` the beginning of a cell, if it lies in one.
  void split(u64 at) {
    auto const next = cells_.lower_bound(at);
    if (next == cells_.begin()) return;
    auto& cell = std::prev(next)->second;
    if (cell.end <= at) return;
    cells_.emplace_hint(next, at, cell);
    cell.end = at;
  }
  template <class Visit>
  void for_cells(u64 begin, u64 end, Visit&& visit) {
    split(begin);
    split(end);
    for (u64 at = begin; at < end;) {
      auto const next = cells_.lower_bound(at);
      u64 const gap_end = next == cells_.end() ? end : std::min(next->first, end);
      auto const cell = gap_end > at ? cells_.emplace_hint(next, at, Cell{gap_end, nobody, {}}) : next;
      visit(cell->second);
      at = cell->second.end;
    }
  }
  std::map<u64, Cell> cells_;
};

}  // namespace

std::vector<std::vector<u32>> dependences(std::span<Segment const> segments) {
  std::vector<std::vector<u32>> all(segments.size());
  Touched touched;
  for (u32 i = 0; i < segments.size(); ++i) {
    auto const& segment = segments[i];
    auto& after = all[i];
    if (segment.size == 0) continue;
    auto const source = reinterpret_cast<u64>(segment.source);
    auto const target = reinterpret_cast<u64>(segment.target);
    touched.read(source, source + segment.size, i, after);
    touched.write(target, target + segment.size, i, after);
    std::ranges::sort(after);
    auto const repeated = std::ranges::unique(after);
    after.erase(repeated.begin(), repeated.end());
    std::erase(after, i);
  }
  return all;
}

}  // namespace meshpost::copying
