#pragma once
#include <vector>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

class ThreadTeam;

/// Whether other cores are free to help.
enum class Cores : u8 { one, all };
constexpr bool by_one_thread(HostWay way) {
  return way == HostWay::memcpy_one || way == HostWay::stream_one;
}

/// The fastest of the ways that `measured` has for copies of that size: of the nearest size there,
/// as a ratio; of those that are nearly as fast, memcpy by one thread or in equal shares. Where
/// nothing was measured, memcpy: by one thread below 1 MiB, else by all.
HostWay best_way(std::vector<HostRates> const& measured, Bytes size, Cores cores = Cores::all);

/// Rates of each way for 1, 4, 16, 64 and 256 MiB, as far as `most` and a sixteenth of the memory
/// that is free allow. In turn, so that what else the machine does meets all alike; a way that
/// loses by far is not repeated. Takes about a second up to 256 MiB, on a busy machine several.
std::vector<HostRates> measure_host_ways(ThreadTeam& team, Bytes most);

/// What host_way() goes by from now on, in all threads. Does nothing if it is empty.
void use_host_rates(std::vector<HostRates> const& measured);

/// How ThreadTeam::copy is to copy that much. Goes by what use_host_rates() was given; where it was
/// given nothing, by what was kept when this machine was measured. Never measures. Thread-safe.
HostWay host_way(Bytes size, Cores cores = Cores::all);

}  // namespace meshpost::fabric
