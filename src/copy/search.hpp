#pragma once
#include <optional>
#include <set>
#include <vector>

#include "meshpost/copy/route.hpp"

namespace meshpost::copying {

/// The cost of a chain of links: `fill` seconds until the first chunk has arrived at the end, then
/// a chunk every `step` seconds.
struct ChainCost {
  double fill = 0, step = 0;
  double seconds(u64 share, u64 chunk) const {
    return share <= chunk ? fill : fill + (double(share) / double(chunk) - 1) * step;
  }
  double rate(u64 chunk) const { return double(chunk) / step; }
};

/// Seconds that `bytes` take on a link. A link that was not measured counts as a slow one of its
/// kind.
double link_seconds(Link const& link, u64 bytes);
/// Extra seconds of a chain of several links that needs the host's threads, to wake them. 4 MiB
/// from pageable memory to an H200 took 0.49 ms in chunks; the bytes need 0.08 ms.
inline constexpr double waking_seconds = 300e-6;
ChainCost chain_cost(Machine const& machine, std::vector<u32> const& links, u64 chunk);

/// Resources that only one of several chains may use. They are the places between the ends, the
/// host's threads, and a device's way to the host in each direction. All links of the device to the
/// host share that way.
class Used {
 public:
  void add(Machine const& machine, std::vector<u32> const& links);
  bool allows(Machine const& machine, Link const& link, u32 target) const;

 private:
  static std::vector<u64> shared(Machine const& machine, Link const& link);
  std::set<u32> places_;
  std::set<u64> resources_;
};

/// True if bytes may rest there on their way.
bool can_relay(Place const& place);

struct Found {
  std::vector<u32> links;
  u64 chunk = 0;
  ChainCost cost;
};

/// The fastest chain for `size` bytes from one place to another, in chunks of the best size. Only
/// chains that share no resource with the used ones. The result is exact.
///
/// The time of a chain is the sum of its links' times for a chunk, plus the longest of these for
/// each further chunk. The latter is no sum over links. So each link time is taken as the limit,
/// and Dijkstra finds the least sum over links within it. The best of these results is the best of
/// all, because its longest link was one of the limits.
std::optional<Found> cheapest_chain(Machine const& machine, u32 from, u32 to, u64 size,
                                    Used const& used);

}  // namespace meshpost::copying
