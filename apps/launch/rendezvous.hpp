#pragma once
#include <string>

#include "system.hpp"

namespace meshpost::launch {

/// The socket that process 0 will accept the others on. It listens from the start, so that nobody
/// else can take the port and nobody connects too early.
struct Rendezvous {
  Fd listener;
  std::string address;  ///< 127.0.0.1:port
};
Rendezvous listen_here();

/// 64 hex digits that nobody can guess.
std::string fresh_secret();

/// Where the launcher is itself process 0 of a job: that job's socket goes to no process of ours.
void keep_outer_listener_back();

}  // namespace meshpost::launch
