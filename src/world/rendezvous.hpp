#pragma once
#include <chrono>
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "world/job.hpp"
#include "world/secret.hpp"

// Where the processes of a job meet.

namespace meshpost {

/// Process 0's side: a socket that listens, and what the others must know to call it.
struct Meeting {
  Descriptor listener;
  Secret secret;
  std::string file = {};  ///< that says where; removed when all have come
  Descriptor held = {};   ///< the open file itself
};

/// A socket that listens at "host:port"; port 0: one that is free.
/// \throws Error(bad_environment) naming the address: taken, not this host's, not resolvable
Descriptor listen_at(std::string const& address);
u32 port_of(Descriptor const& listener);
/// True if somebody listens there. Takes `timeout` at most.
/// \throws Error(bad_environment) for an impossible address
bool answers(std::string const& address, std::chrono::milliseconds timeout);

/// \throws Error(bad_environment) as listen_at
Meeting open_meeting(Job const& job);

/// For remedies: says that all must meet at one file; empty if they don't use a file. Each process
/// derives the name of that file from its launcher.
std::string where_to_meet(Job const& job);

/// When to stop waiting for others, from now on.
std::chrono::steady_clock::time_point start_deadline(Job const& job);

/// The others' side: connects to the listener there, again and again until `deadline`.
struct Caller {
  Descriptor socket;
  Secret secret;
};
/// \throws Error(bad_environment) for an impossible address, or if no further file can be opened;
/// Error(deadline) if nobody listens
Caller call(Job const& job, std::chrono::steady_clock::time_point deadline);

}  // namespace meshpost
