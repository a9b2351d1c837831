#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "meshpost/array/boxes.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost {

/// Where the elements of an array live: each belongs to one part, and has a place in it. Parts are
/// memory of devices or processes, numbered from 0; the distribution knows no more of them. A plain
/// value, cheap to copy.
///
/// Source: the distributions of LAMA, and its sizes in proportion to speed.
class Distribution {
 public:
  /// Consecutive elements in each part. Sizes differ by one at most.
  /// \throws Error(bad_argument) if there are no parts
  static Distribution block(u64 size, u32 parts);
  /// Consecutive elements in each part, in proportion to its share, for example its measured speed.
  /// Sizes differ from the exact proportion by less than one. A part whose share is 0 gets nothing.
  /// \throws Error(bad_argument) for a share that is negative, infinite or no number; or if the sum
  /// of the shares is 0
  static Distribution block(u64 size, std::span<double const> shares);
  /// Blocks of `block` elements, dealt to the parts in turn. A block of 1: cyclic.
  /// \throws Error(bad_argument) if there are no parts, or the block is empty
  static Distribution cyclic(u64 size, u32 parts, u64 block = 1);
  /// Element i belongs to part owners[i]. In a part, elements keep their order. It takes 20 bytes
  /// an element, shared by all copies of the value.
  /// \throws Error(bad_argument) for an owner that is no part
  static Distribution general(std::vector<u32> owners, u32 parts);
  /// The cells of a grid, by their global index (see Boxes). In a part, they lie x fastest. It
  /// takes no memory for each cell.
  static Distribution boxes(Boxes boxes);

  u64 size() const { return size_; }  ///< elements of all parts
  u32 parts() const { return parts_; }
  /// \throws Error(bad_argument) if there is no such part
  u64 size_of(u32 part) const;
  /// The part of an element. \throws Error(bad_argument) if there is no such element
  u32 owner_of(u64 index) const;
  /// Its place there, from 0. \throws as owner_of()
  u64 place_of(u64 index) const;
  /// The element at a place. \throws Error(bad_argument) if there is no such part or place
  u64 index_of(u32 part, u64 place) const;

  /// The first element of a part whose elements are consecutive; nothing for other parts, and for
  /// other distributions than block. \throws as size_of()
  std::optional<u64> begin_of(u32 part) const;

  /// "block", "cyclic (blocks of 4)", "general" or "boxes", with sizes.
  std::string describe() const;
  /// Equal for equal distributions of one kind, and different for others, most likely.
  u64 fingerprint() const;
  /// True if both put each element in the same part at the same place.
  bool operator==(Distribution const& other) const;

 private:
  struct Blocks {
    std::vector<u64> begins;  // of each part, and the size
  };
  struct Cycle {
    u64 block;
  };
  struct Lists {
    std::vector<u32> owners;
    std::vector<u64> places;            // by element
    std::vector<u64> elements, begins;  // by part: its elements, and where they begin
  };
  using Rule = std::variant<Blocks, Cycle, Lists, Boxes>;

  Distribution(u64 size, u32 parts, Rule rule);
  void check_index(u64 index, char const* operation) const;
  void check_part(u32 part, char const* operation) const;

  u64 size_;
  u32 parts_;
  std::shared_ptr<Rule const> rule_;
};

}  // namespace meshpost
