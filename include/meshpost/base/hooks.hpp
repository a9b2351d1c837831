#pragma once
#include <atomic>
#include <functional>
#include <string_view>

#include "meshpost/base/step.hpp"

namespace meshpost::hooks {

/// A step's name as tests and messages spell it: "put_copy", ...
char const* name(Step step);

/// Decides for each (step, world rank). Called from worker threads, several at once.
using Hook = std::function<Action(Step, unsigned rank)>;

/// Installs `hook` for the whole process, null to remove it. Not during a run.
void install(Hook hook);

/// True if there is a hook. Read at every step, so it costs one relaxed load.
inline std::atomic<bool> installed{false};

/// Asks the installed hook.
Action ask(Step step, unsigned rank);

}  // namespace meshpost::hooks
