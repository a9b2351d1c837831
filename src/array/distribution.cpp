#include "meshpost/array/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "array/box_text.hpp"
#include "base/hash.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

template <class... Work>
struct Overloaded : Work... {
  using Work::operator()...;
};

void check_parts(u64 parts, char const* call) {
  if (parts == 0)
    throw Error(Kind::bad_argument, call, "an array of 0 parts was requested",
                "give at least one part");
}

// Where each part begins. Rounded begins, not rounded sizes: so each size is less than one away
// from its exact proportion, and they add up.
std::vector<u64> begins_of(u64 size, std::span<double const> shares) {
  double total = 0;
  for (u64 part = 0; part < shares.size(); ++part) {
    if (!(shares[part] >= 0) || std::isinf(shares[part]))
      throw Error(Kind::bad_argument, "Distribution::block",
                  fmt::format("the share of part {} is {}", part, shares[part]),
                  "give each part a share from 0 on, for example its speed");
    total += shares[part];
  }
  if (!(total > 0) || std::isinf(total))
    throw Error(Kind::bad_argument, "Distribution::block",
                fmt::format("the shares of {} parts add up to {}", shares.size(), total),
                "give at least one part a share above 0, and none that is huge");
  std::vector<u64> begins{0};
  double before = 0;
  u64 last = 0;  // behind the last part that gets something
  for (u64 part = 0; part < shares.size(); ++part)
    if (shares[part] > 0) last = part + 1;
  for (u64 part = 0; part < shares.size(); ++part) {
    before += shares[part];
    auto const end = static_cast<u64>(std::llround(static_cast<double>(size) * (before / total)));
    begins.push_back(part + 1 >= last ? size : std::clamp(end, begins.back(), size));
  }
  return begins;
}

}  // namespace

Distribution::Distribution(u64 size, u32 parts, Rule rule)
    : size_(size), parts_(parts), rule_(std::make_shared<Rule const>(std::move(rule))) {}

Distribution Distribution::block(u64 size, u32 parts) {
  check_parts(parts, "Distribution::block");
  u64 const each = size / parts, longer = size % parts;  // the first parts have one more
  std::vector<u64> begins;
  for (u64 part = 0; part <= parts; ++part) begins.push_back(part * each + std::min(part, longer));
  return {size, parts, Blocks{std::move(begins)}};
}

Distribution Distribution::block(u64 size, std::span<double const> shares) {
  check_parts(shares.size(), "Distribution::block");
  return {size, static_cast<u32>(shares.size()), Blocks{begins_of(size, shares)}};
}

Distribution Distribution::cyclic(u64 size, u32 parts, u64 block) {
  check_parts(parts, "Distribution::cyclic");
  if (block == 0)
    throw Error(Kind::bad_argument, "Distribution::cyclic", "blocks of 0 elements were requested",
                "give blocks of at least one element");
  return {size, parts, Cycle{block}};
}

Distribution Distribution::general(std::vector<u32> owners, u32 parts) {
  check_parts(parts, "Distribution::general");
  Lists lists{.owners = {}, .places = {}, .elements = {}, .begins = {}};
  std::vector<u64> sizes(parts);
  lists.places.reserve(owners.size());
  for (u64 index = 0; index < owners.size(); ++index) {
    if (owners[index] >= parts)
      throw Error(Kind::bad_argument, "Distribution::general",
                  fmt::format("element {} belongs to part {}, and there are {} parts", index,
                              owners[index], parts),
                  "number parts from 0");
    lists.places.push_back(sizes[owners[index]]++);
  }
  lists.begins.assign(1, 0);
  std::inclusive_scan(sizes.begin(), sizes.end(), std::back_inserter(lists.begins));
  lists.elements.resize(owners.size());
  for (u64 index = 0; index < owners.size(); ++index)
    lists.elements[lists.begins[owners[index]] + lists.places[index]] = index;
  lists.owners = std::move(owners);
  u64 const size = lists.owners.size();
  return {size, parts, std::move(lists)};
}

Distribution Distribution::boxes(Boxes boxes) {
  u64 const size = boxes.grid().cells();
  u32 const parts = boxes.parts();
  return {size, parts, std::move(boxes)};
}

void Distribution::check_index(u64 index, char const* operation) const {
  if (index < size_) return;
  throw Error(Kind::bad_argument, operation,
              fmt::format("there is no element {}; the array has {}", index, size_),
              "number elements from 0");
}

void Distribution::check_part(u32 part, char const* operation) const {
  if (part < parts_) return;
  throw Error(Kind::bad_argument, operation,
              fmt::format("there is no part {}; the array has {}", part, parts_),
              "number parts from 0");
}

u64 Distribution::size_of(u32 part) const {
  check_part(part, "Distribution::size_of");
  return std::visit(
      Overloaded{
          [&](Blocks const& blocks) { return blocks.begins[part + 1] - blocks.begins[part]; },
          [&](Cycle const& cycle) {
            u64 const blocks = size_ / cycle.block, rest = size_ % cycle.block;
            u64 const whole = blocks / parts_ + (part < blocks % parts_ ? 1 : 0);
            return whole * cycle.block + (part == blocks % parts_ ? rest : 0);
          },
          [&](Lists const& lists) { return lists.begins[part + 1] - lists.begins[part]; },
          [&](Boxes const& boxes) { return boxes.box(part).cells(); }},
      *rule_);
}

u32 Distribution::owner_of(u64 index) const {
  check_index(index, "Distribution::owner_of");
  return std::visit(
      Overloaded{[&](Blocks const& blocks) {
                   auto const next = std::ranges::upper_bound(blocks.begins, index);
                   return static_cast<u32>(next - blocks.begins.begin() - 1);
                 },
                 [&](Cycle const& cycle) { return static_cast<u32>(index / cycle.block % parts_); },
                 [&](Lists const& lists) { return lists.owners[index]; },
                 [&](Boxes const& boxes) { return boxes.owner_of(boxes.grid().cell_at(index)); }},
      *rule_);
}

u64 Distribution::place_of(u64 index) const {
  check_index(index, "Distribution::place_of");
  return std::visit(
      Overloaded{[&](Blocks const& blocks) {
                   return index - *(std::ranges::upper_bound(blocks.begins, index) - 1);
                 },
                 [&](Cycle const& cycle) {
                   return index / cycle.block / parts_ * cycle.block + index % cycle.block;
                 },
                 [&](Lists const& lists) { return lists.places[index]; },
                 [&](Boxes const& boxes) {
                   Cell const cell = boxes.grid().cell_at(index);
                   return boxes.box(boxes.owner_of(cell)).place_of(cell);
                 }},
      *rule_);
}

u64 Distribution::index_of(u32 part, u64 place) const {
  if (u64 const has = size_of(part); place >= has)
    throw Error(Kind::bad_argument, "Distribution::index_of",
                fmt::format("there is no place {} in part {}, which has {}", place, part, has),
                "number places from 0");
  return std::visit(
      Overloaded{[&](Blocks const& blocks) { return blocks.begins[part] + place; },
                 [&](Cycle const& cycle) {
                   return (place / cycle.block * parts_ + part) * cycle.block + place % cycle.block;
                 },
                 [&](Lists const& lists) { return lists.elements[lists.begins[part] + place]; },
                 [&](Boxes const& boxes) {
                   return boxes.grid().place_of(boxes.box(part).cell_at(place));
                 }},
      *rule_);
}

std::optional<u64> Distribution::begin_of(u32 part) const {
  check_part(part, "Distribution::begin_of");
  auto const* const blocks = std::get_if<Blocks>(rule_.get());
  return blocks ? std::optional(blocks->begins[part]) : std::nullopt;
}

std::string Distribution::describe() const {
  auto const kind = std::visit(
      Overloaded{[](Blocks const&) { return std::string("block"); },
                 [](Cycle const& cycle) {
                   return cycle.block == 1 ? std::string("cyclic")
                                           : fmt::format("cyclic (blocks of {})", cycle.block);
                 },
                 [](Lists const&) { return std::string("general"); },
                 [](Boxes const& boxes) { return "boxes of " + text_of(boxes.extents()); }},
      *rule_);
  u64 least = ~u64{0}, most = 0;
  for (u32 part = 0; part < parts_; ++part) {
    least = std::min(least, size_of(part));
    most = std::max(most, size_of(part));
  }
  return fmt::format(
      "{}: {} elements in {} part{} of {}", kind, size_, parts_, parts_ == 1 ? "" : "s",
      least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
}

u64 Distribution::fingerprint() const {
  auto const of = [&](auto const& list) {
    return hash_of({reinterpret_cast<char const*>(list.data()), list.size() * sizeof list[0]});
  };
  u64 const rule =
      std::visit(Overloaded{[&](Blocks const& blocks) { return of(blocks.begins); },
                            [&](Cycle const& cycle) { return of(std::array{cycle.block}); },
                            [&](Lists const& lists) { return of(lists.owners); },
                            [&](Boxes const& boxes) { return boxes.fingerprint(); }},
                 *rule_);
  return of(std::array{rule, u64{rule_->index()}, size_, u64{parts_}});
}

bool Distribution::operator==(Distribution const& other) const {
  if (size_ != other.size_ || parts_ != other.parts_) return false;
  if (rule_ == other.rule_) return true;
  auto const *const boxes = std::get_if<Boxes>(rule_.get()), *const others = std::get_if<Boxes>(
                                                                 other.rule_.get());
  if (boxes && others && *boxes == *others) return true;
  for (u64 index = 0; index < size_; ++index)
    if (owner_of(index) != other.owner_of(index) || place_of(index) != other.place_of(index))
      return false;
  return true;
}

}  // namespace meshpost
