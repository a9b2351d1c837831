#pragma once
#include <string>

#include "common/command.hpp"

namespace topo {

/// The command line.
struct Options : meshpost::apps::Common {
  std::string measure = "once";
};

/// \return the exit status, 0
int run(Options const& options);

}  // namespace topo
