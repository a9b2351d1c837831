#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/fn.hpp"

namespace meshpost::launch {

/// What all processes of a job are told alike.
struct Job {
  u32 processes = 1;
  u32 nodes = 0;                       ///< pretended ones; 0: none
  std::string rendezvous;              ///< host:port, where process 0 listens
  std::string secret;                  ///< 64 hex digits
  std::vector<std::string> variables;  ///< NAME=VALUE of the user
};

/// What one of them is told.
struct Process {
  u32 number = 0;
  int listener = -1;  ///< descriptor of the socket that it inherits; -1: none
};

/// Is this one of the variables that tell a process of its job? Outer jobs' are never inherited.
bool is_of_the_job(std::string_view name);

/// The pretended node of a process: nodes get blocks of neighbours that differ by one at most.
u32 node_of(Job const& job, u32 process);

/// The whole environment of a process: what was inherited, then the user's variables, then the
/// job's; the later replaces the earlier.
std::vector<std::string> child_environment(std::vector<std::string> const& inherited,
                                           Job const& job, Process process);

/// The variables of this process.
std::vector<std::string> inherited_environment();

}  // namespace meshpost::launch
