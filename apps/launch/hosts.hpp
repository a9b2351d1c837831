#pragma once
#include <string>
#include <vector>

#include "meshpost/base/fn.hpp"

// The hosts of a job, and which process runs on which. Plain values.

namespace meshpost::launch {

struct Host {
  std::string name;  ///< as ssh takes it: a name, an address, user@name
  u32 slots = 0;     ///< processes that it takes; 0: nobody said
  bool operator==(Host const&) const = default;
};

/// A list as "a,b:4,c". A host that is named again has the slots of both.
/// \throws Error(bad_argument) naming the entry
std::vector<Host> read_hosts(std::string const& list);

/// A file as mpirun's: a host a line, "a", "a slots=4" or "a:4"; what follows # is a comment.
/// \throws Error(bad_argument) naming the line
std::vector<Host> read_hostfile(std::string const& path);

/// The host of each of `processes` processes, as its place in `hosts`; 0 processes: one a slot.
/// Hosts are filled in order, where one says how much it takes; else they get blocks of neighbours
/// that differ by one at most.
/// \throws Error(bad_argument) where there are more processes than slots
std::vector<u32> place(std::vector<Host> const& hosts, u32 processes);

/// The block of `process`, of `blocks` that differ by one at most.
inline u32 block_of(u32 process, u32 processes, u32 blocks) { return process * blocks / processes; }

}  // namespace meshpost::launch
