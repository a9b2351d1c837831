#pragma once
#include <string>

#include "system.hpp"

namespace meshpost::launch {

/// The socket on which process 0 will accept the others. It listens from the start, so that no
/// other program takes the port and no process connects too early.
struct Rendezvous {
  Fd listener;
  std::string address;  ///< 127.0.0.1:port
};
Rendezvous listen_here();

/// 64 hex digits that nobody can guess.
std::string fresh_secret();

/// For a launcher that is itself process 0 of a job: its processes do not get the socket of that
/// job.
void keep_outer_listener_back();

}  // namespace meshpost::launch
