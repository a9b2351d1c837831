#pragma once
#include <vector>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

class ThreadTeam;

/// The cores that are free to help.
enum class Cores : u8 { one, all };
constexpr bool by_one_thread(HostWay way) {
  return way == HostWay::memcpy_one || way == HostWay::stream_one;
}

/// The fastest way in `measured` for copies of that size, by the nearest measured size (as a
/// ratio). Among ways of nearly the same speed it prefers memcpy by one thread or in equal shares.
/// If nothing was measured, memcpy: by one thread below 1 MiB, else by all.
HostWay best_way(std::vector<HostRates> const& measured, Bytes size, Cores cores = Cores::all);

/// Rates of each way for 1, 4, 16, 64 and 256 MiB, as far as `most` and a sixteenth of the free
/// memory allow. The ways take turns, so that other load on the machine affects all of them alike.
/// A way that is far slower is not repeated. Takes about a second up to 256 MiB, on a busy machine
/// several.
std::vector<HostRates> measure_host_ways(ThreadTeam& team, Bytes most);

/// Sets the rates that host_way() uses from now on, in all threads. Does nothing if it is empty.
void use_host_rates(std::vector<HostRates> const& measured);

/// The way in which ThreadTeam::copy copies so many bytes. It uses the rates of use_host_rates().
/// If there are none, it uses those that were kept when this machine was measured. Never measures.
/// Thread-safe.
HostWay host_way(Bytes size, Cores cores = Cores::all);

}  // namespace meshpost::fabric
