#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "meshpost/world/group_tables.hpp"
#include "rma/world_memory.hpp"

namespace meshpost::detail {

/// A World's communicators, and their memory in the heap. One thread at a time.
class Communicators : WorldMemory {
 public:
  /// `budget`: bytes for collectives of the world's communicator, on each device.
  Communicators(u32 world, WorldMemory const& memory, Bytes budget);

  Communicator const& world() const { return world_; }
  Communicator const& device() const { return device_; }
  /// Collective. \throws Error(bad_argument)
  Communicator split(Communicator const& parent, std::function<i64(RankId)> const& color);
  std::string name(u32 number) const;  ///< for messages
  /// True if two ranks are in one group of a communicator.
  bool same_group(u32 one, u32 other, u32 communicator) const;

 private:
  Communicator make(Communicator::Shape shape, u32 groups, u32 places);
  u64 upload(void const* data, u64 bytes);  // to the same offset of every device

  u32 const number_;  // of the World
  Bytes const budget_;
  u32 next_ = 0;
  Communicator world_, device_;
  std::map<u32, std::vector<i64>> colors_;  // of each split, by its number
};

}  // namespace meshpost::detail
