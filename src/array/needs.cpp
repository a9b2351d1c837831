#include "array/needs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

// Each index once. Sorted now and then, so that repeated ones take no memory.
class Collected {
 public:
  void add(u64 index) {
    indices_.push_back(index);
    if (indices_.size() >= limit_) shrink();
  }
  std::vector<u64> take() {
    shrink();
    return std::move(indices_);
  }

 private:
  void shrink() {
    std::ranges::sort(indices_);
    auto const repeated = std::ranges::unique(indices_);
    indices_.erase(repeated.begin(), repeated.end());
    limit_ = std::max<u64>(u64{1} << 20, 2 * indices_.size());
  }
  std::vector<u64> indices_;
  u64 limit_ = u64{1} << 20;
};

// True for elements of a part; quick where they are consecutive.
class Own {
 public:
  Own(Distribution const& distribution, u32 part)
      : distribution_(distribution), part_(part), begin_(distribution.begin_of(part)) {
    size_ = distribution.size_of(part);
  }
  bool has(u64 index) const {
    return begin_ ? index - *begin_ < size_ : distribution_.owner_of(index) == part_;
  }

 private:
  Distribution const& distribution_;
  u32 part_;
  std::optional<u64> begin_;
  u64 size_;
};

u64 checked(Distribution const& distribution, u32 part, u64 index) {
  if (index < distribution.size()) return index;
  throw Error(Kind::bad_argument, make_a_plan,
              fmt::format("part {} needs element {}, and the array has {}", part, index,
                          distribution.size()),
              "number elements from 0");
}

}  // namespace

std::vector<u64> others_among(Distribution const& distribution, u32 part,
                              std::span<u64 const> indices) {
  Own const own(distribution, part);
  Collected needed;
  for (u64 const index : indices)
    if (!own.has(checked(distribution, part, index))) needed.add(index);
  return needed.take();
}

std::vector<u64> others_in(Distribution const& distribution, u32 part,
                           Plan::Pattern const& pattern) {
  auto const& [offsets, columns] = pattern;
  Own const own(distribution, part);
  Collected needed;
  for (u64 row = 0; row + 1 < offsets.size(); ++row) {
    if (offsets[row] > offsets[row + 1] || offsets[row + 1] > columns.size())
      throw Error(Kind::bad_argument, make_a_plan,
                  fmt::format("row {} of part {} has the columns from {} to {} of {}", row, part,
                              offsets[row], offsets[row + 1], columns.size()),
                  "give offsets that ascend, one more than there are rows");
    for (u64 at = offsets[row]; at < offsets[row + 1]; ++at)
      if (u64 const column = checked(distribution, part, columns[at]); !own.has(column))
        needed.add(column);
  }
  return needed.take();
}

}  // namespace meshpost
