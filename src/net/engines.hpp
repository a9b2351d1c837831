#pragma once
#include "net/engine.hpp"

// The engines of this build.

namespace meshpost::net {

/// On libfabric. `provider`: empty for the best.
/// \throws Error(bad_environment), also if the library was built without it
std::unique_ptr<Engine> make_ofi(std::string const& provider, std::string const& bind, Gpus gpus);

}  // namespace meshpost::net
