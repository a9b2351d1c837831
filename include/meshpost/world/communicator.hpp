#pragma once
#include "meshpost/base/types.hpp"

namespace meshpost {

/// A group of ranks as one of its members sees it.
struct Group {
  u32 number;       ///< of the group in its communicator
  u32 index;        ///< this rank's number in the group
  u32 size;         ///< ranks; 0: this rank is in no group
  u32 local_size;   ///< ranks on this rank's device
  u32 devices;      ///< devices that the group has ranks on
  u32 members;      ///< position of its world ranks in the member table
  u32 places;       ///< position of its devices in the device table
  u32 local_first;  ///< number in the group of its first rank on this rank's device
  u32 place;        ///< number of this rank's device in the group
};

/// State for barriers that the ranks of a group on one device share; cleared at the end of every
/// run.
struct alignas(128) BarrierWords {
  u32 arrived;  ///< ranks of this device at the barrier that is forming; see Rank::arrive
  /// Twice the number of ranks that this device was told of, summed over every other barrier of the
  /// run, by its parity (wraps).
  u32 released[2];
  u32 met;  ///< times that the ranks of this device have met alone (wraps)
};

/// An ordered group of ranks, or a partition of the world into several. In a partition each rank
/// means its own group. A handle that kernels copy; valid as long as its World.
struct Communicator {
  enum class Shape : u32 { world, device, split };

  u32 world = 0;   ///< number of the World that made it
  u32 number = 0;  ///< of the communicator in its world
  Shape shape = Shape::world;
  u32 slot = 0;   ///< bytes that a rank may contribute to one step of a collective
  u32 slots = 0;  ///< in a half of the gathering area: on a device, for all ranks that it may serve
  // Offsets in the symmetric heap; every device has its own copy of the tables.
  u64 groups = 0;       ///< Group[world ranks]; split only
  u64 members = 0;      ///< u32[world ranks]; split only
  u64 places = 0;       ///< u32[]; split only
  u64 barriers = 0;     ///< BarrierWords[groups]
  u64 generations = 0;  ///< u32[ranks of the device]: barriers passed in this run
  u64 gather = 0;       ///< two halves of [slots][slot] bytes, used in turn
  u64 parts = 0;        ///< two halves of [place_count][slot] bytes: the combined values of devices
  u32 place_count = 0;  ///< entries of the device table
};

}  // namespace meshpost
