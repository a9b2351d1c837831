#pragma once
#include <functional>
#include <memory>
#include <string>

#include "net/engine.hpp"
#include "world/process_group.hpp"

namespace meshpost {

/// Makes an engine in each process, connected to the processes that `talks_to` names. Collective.
/// `engine`: its name, as for net::make_engine; `gpus`: of this process.
/// \throws Error(bad_environment) in all processes if one has no engine
std::unique_ptr<net::Engine> join_engine(ProcessGroup const& group, std::string const& operation,
                                         std::string const& engine, net::Gpus gpus,
                                         std::function<bool(u32)> const& talks_to);

}  // namespace meshpost
