#pragma once
// How the segments are cut: a share for each device, and of that a share for each rank.
#include <meshpost/meshpost.hpp>

#include <algorithm>
#include <vector>

#include "lanes.hpp"

namespace particles {

/// Consecutive segments.
struct Range {
  u32 begin, end;

  MESHPOST_FN u32 size() const { return end - begin; }
};

/// An owner needs the lists of this many segments beyond its own, on each side: particles of the
/// second one may have come to the first, which its own particles feel.
inline constexpr u32 halo = 2;

struct Shape {
  u32 segments, devices, ranks_per_device;
  u32 chunks;  ///< of each segment: its capacity in steps of 32

  MESHPOST_FN Range of_device(u32 device) const { return {share(device), share(device + 1)}; }
  /// Ranks of a device that own segments, each at least as many as a neighbour needs. They are the
  /// first ones; the others idle.
  MESHPOST_FN u32 owners(u32 device) const {
    u32 const most = of_device(device).size() / halo;
    return ranks_per_device < most ? ranks_per_device : most;
  }
  MESHPOST_FN Range of_rank(u32 rank) const {
    u32 const device = rank / ranks_per_device, place = rank % ranks_per_device;
    u32 const among = owners(device);
    Range const all = of_device(device);
    if (place >= among) return {all.end, all.end};
    return {all.begin + part(all.size(), place, among),
            all.begin + part(all.size(), place + 1, among)};
  }
  static constexpr u32 none = ~0u;
  /// The owner of the segments below those of an owner.
  MESHPOST_FN u32 below(u32 rank) const {
    u32 const device = rank / ranks_per_device;
    if (rank % ranks_per_device > 0) return rank - 1;
    return device == 0 ? none : (device - 1) * ranks_per_device + owners(device - 1) - 1;
  }
  MESHPOST_FN u32 above(u32 rank) const {
    u32 const device = rank / ranks_per_device;
    if (rank % ranks_per_device + 1 < owners(device)) return rank + 1;
    return device + 1 == devices ? none : (device + 1) * ranks_per_device;
  }

 private:
  MESHPOST_FN static u32 part(u32 count, u32 place, u32 among) {
    return static_cast<u32>(u64{count} * place / among);
  }
  MESHPOST_FN u32 share(u32 device) const { return part(segments, device, devices); }
};

/// The parts of all ranks in a window of lists of `list_bytes`: a rank's own segments and the halo.
/// The parts of a device share one block and overlap, so neighbours there see each other's lists.
inline std::vector<meshpost::Extent> parts(Shape const& shape, u64 list_bytes) {
  std::vector<meshpost::Extent> all(u64{shape.devices} * shape.ranks_per_device);
  for (u32 r = 0; r < all.size(); ++r) {
    Range const own = shape.of_rank(r);
    u32 const first = shape.of_device(r / shape.ranks_per_device).begin;
    if (own.size() > 0)
      all[r] = {(own.begin - first) * list_bytes, (own.size() + 2 * halo) * list_bytes};
  }
  return all;
}

}  // namespace particles
