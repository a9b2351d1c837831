#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// Which process of which job this is, as its launcher said. A plain value.
struct Job {
  u32 process = 0, processes = 1;
  std::string launcher;  ///< for messages; empty: none, the process is alone
  std::string identity;  ///< the launcher's name for the job; empty if it gives none
  /// Where process 0 listens: "host:port", or "file:PATH". Process 0 writes the address and the
  /// secret to that file.
  std::string rendezvous;
  int listener = -1;      ///< process 0: a socket that listens there already
  std::string secret;     ///< 64 hexadecimal digits; empty if the file holds it
  std::string node;       ///< processes with different names act as if they shared no memory
  bool overlaps = false;  ///< its processes may be in other jobs at the same time
  std::chrono::milliseconds timeout{};  ///< for all to start; 0: no limit
  std::chrono::milliseconds silence{};  ///< after which a process counts as lost; 0: never

  bool alone() const { return processes == 1; }
};

/// A variable's value; null if it is not set.
using Variables = std::function<char const*(char const* name)>;

/// The job of a process with these variables: meshpost-run's, Open MPI's, PMI's (MPICH) or Slurm's.
/// \throws Error(bad_environment) that names the variable, its value and the allowed values
Job job_from(Variables const& variables);

}  // namespace meshpost
