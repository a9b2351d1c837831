#pragma once
#include <functional>
#include <memory>

#include "meshpost/base/error.hpp"
#include "world/job.hpp"
#include "world/line.hpp"

// How processes join a job.

namespace meshpost::join {

/// Process 0 calls these while the others join.
struct Host {
  std::function<void(u32 process, std::unique_ptr<Line>)> welcome;  ///< takes a greeted line
  std::function<void()> check;  ///< several times a second; an exception ends the waiting
  std::function<void(Error const&)> dismiss;  ///< tells those that have joined: no job
};

/// Process 0: lets the others in, and returns when all are there. A process that knows the secret
/// but can't be of this job ends the job in all processes. After the job has failed, late callers
/// are told so for a second.
/// \throws Error(deadline) that names the missing processes; Error(bad_environment,
/// version_mismatch)
void admit_all(Job const& job, Host const& host);

/// The others: returns a line to process 0 that has been greeted.
/// \throws Error(deadline, bad_environment, version_mismatch)
std::unique_ptr<Line> enter(Job const& job);

/// This host's name, shortened to fit into a greeting.
std::string host_name();

/// Differs between running hosts; the same in all containers of one host.
std::string boot_id();

}  // namespace meshpost::join
