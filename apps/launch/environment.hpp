#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/fn.hpp"

namespace meshpost::launch {

/// Settings that are the same for all processes of a job.
struct Job {
  u32 processes = 1;
  u32 nodes = 0;                       ///< pretended ones; 0: none
  std::string rendezvous;              ///< host:port, where process 0 listens
  std::string secret;                  ///< 64 hex digits
  std::vector<std::string> variables;  ///< NAME=VALUE of the user
};

/// Settings of one process.
struct Process {
  u32 number = 0;
  int listener = -1;  ///< descriptor of the socket that it inherits; -1: none
};

/// True for variables that describe a job to its processes. Those of an outer job are never
/// inherited.
bool is_of_the_job(std::string_view name);

/// The pretended node of a process. Nodes get blocks of neighbours, whose sizes differ by at most
/// one.
u32 node_of(Job const& job, u32 process);

/// The whole environment of a process: inherited variables, then the user's, then the job's. Later
/// ones replace earlier ones.
std::vector<std::string> child_environment(std::vector<std::string> const& inherited,
                                           Job const& job, Process process);

/// The variables of this process.
std::vector<std::string> inherited_environment();

}  // namespace meshpost::launch
