#pragma once
#include <chrono>
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "world/job.hpp"
#include "world/secret.hpp"

// Where the processes of a job meet.

namespace meshpost {

/// Process 0's side: a socket that listens, and what the others must know.
struct Meeting {
  Descriptor listener;
  Secret secret;
  std::string file = {};  ///< that says where; removed when all have come
  Descriptor held = {};   ///< itself
};

/// A socket that listens at "host:port"; port 0: one that is free.
/// \throws Error(bad_environment) naming the address: taken, not this host's, not resolvable
Descriptor listen_at(std::string const& address);
u32 port_of(Descriptor const& listener);
/// Whether somebody listens there, found out within `timeout`. \throws Error(bad_environment) for
/// an address that can't be
bool answers(std::string const& address, std::chrono::milliseconds timeout);

/// \throws Error(bad_environment) as listen_at
Meeting open_meeting(Job const& job);

/// For remedies: that all must meet at one file; empty where it is none. Each process finds the
/// name of that file by itself, from its launcher.
std::string where_to_meet(Job const& job);

/// When to stop waiting for others, from now on.
std::chrono::steady_clock::time_point start_deadline(Job const& job);

/// The others' side: connects, again and again until `deadline`, to whatever listens there.
struct Caller {
  Descriptor socket;
  Secret secret;
};
/// \throws Error(bad_environment) for an address that can't be, or where no file is to be had;
/// Error(deadline) when nobody listens
Caller call(Job const& job, std::chrono::steady_clock::time_point deadline);

}  // namespace meshpost
