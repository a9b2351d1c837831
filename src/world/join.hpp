#pragma once
#include <functional>
#include <memory>

#include "meshpost/base/error.hpp"
#include "world/job.hpp"
#include "world/line.hpp"

// How unauthenticated peers become processes of a job.

namespace meshpost::join {

/// What process 0 does meanwhile.
struct Host {
  std::function<void(u32 process, std::unique_ptr<Line>)> welcome;  ///< takes a greeted line
  std::function<void()> check;  ///< several times a second; what it throws ends the waiting
  std::function<void(Error const&)> dismiss;  ///< tells those who are in that there will be no job
};

/// Process 0: lets the others in, and returns when all are there. One that knows the secret and
/// can't be of this job ends it, in all processes. Those who come late to a job that has failed are
/// told so, for a second.
/// \throws Error(deadline) naming the missing; Error(bad_environment, version_mismatch)
void admit_all(Job const& job, Host const& host);

/// The others: a line to process 0, greeted.
/// \throws Error(deadline, bad_environment, version_mismatch)
std::unique_ptr<Line> enter(Job const& job);

/// This host's name, shortened to what a greeting holds.
std::string host_name();

/// Differs between hosts that are up; the same in all containers of one.
std::string boot_id();

}  // namespace meshpost::join
