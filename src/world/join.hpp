#pragma once
#include <functional>
#include <memory>

#include "meshpost/base/error.hpp"
#include "world/job.hpp"
#include "world/line.hpp"

// How strangers become processes of a job.

namespace meshpost::join {

using Welcome = std::function<void(u32 process, std::unique_ptr<Line>)>;

/// Process 0: lets the others in, giving each greeted line to `welcome`, and returns when all are
/// there. Calls `check` several times a second; what it throws ends the waiting.
/// \throws Error(deadline) naming the missing; Error(bad_environment)
void admit_all(Job const& job, Welcome welcome, std::function<void()> const& check);

/// The others: a line to process 0, greeted.
/// \throws Error(deadline, bad_environment, version_mismatch)
std::unique_ptr<Line> enter(Job const& job);

/// This host's name, shortened to what a greeting holds.
std::string host_name();

/// Differs between hosts that are up; the same in all containers of one.
std::string boot_id();

}  // namespace meshpost::join
