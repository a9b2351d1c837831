#pragma once
#include <optional>
#include <set>
#include <vector>

#include "meshpost/copy/route.hpp"

namespace meshpost::copying {

/// What a chain of links costs: `fill` seconds until the first chunk has arrived at the end, and
/// from then on a chunk every `step` seconds.
struct ChainCost {
  double fill = 0, step = 0;
  double seconds(u64 share, u64 chunk) const {
    return share <= chunk ? fill : fill + (double(share) / double(chunk) - 1) * step;
  }
  double rate(u64 chunk) const { return double(chunk) / step; }
};

/// Seconds that `bytes` take on a link. One that was not measured counts as a slow one of its kind.
double link_seconds(Link const& link, u64 bytes);
/// What a chain of several links takes besides to wake the host's threads, if it needs any: 4 MiB
/// from pageable memory to an H200 took 0.49 ms in chunks, where the bytes need 0.08 ms.
inline constexpr double waking_seconds = 300e-6;
ChainCost chain_cost(Machine const& machine, std::vector<u32> const& links, u64 chunk);

/// What only one of several chains may use: the places between the ends, a device's way to the host
/// in each direction, which all of its links there share, and the host's threads.
class Used {
 public:
  void add(Machine const& machine, std::vector<u32> const& links);
  bool allows(Machine const& machine, Link const& link, u32 target) const;

 private:
  static std::vector<u64> shared(Machine const& machine, Link const& link);
  std::set<u32> places_;
  std::set<u64> resources_;
};

/// Whether bytes may rest there on their way.
bool can_relay(Place const& place);

struct Found {
  std::vector<u32> links;
  u64 chunk = 0;
  ChainCost cost;
};

/// The chain that takes `size` bytes from one place to another soonest, of those that don't meet
/// what is used, in chunks of the best size. Exact.
///
/// The time of a chain is the sum of its links' times for a chunk, and as often as there are
/// further chunks the longest of these, which is no sum. So for each link time as the limit,
/// Dijkstra finds the least sum over links within it; the best of these is the best of all, for its
/// longest link was one of the limits.
std::optional<Found> cheapest_chain(Machine const& machine, u32 from, u32 to, u64 size,
                                    Used const& used);

}  // namespace meshpost::copying
