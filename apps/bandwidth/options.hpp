#pragma once
#include <random>
#include <string>
#include <vector>

#include "common/command.hpp"

namespace bandwidth {

/// The command line.
struct Options : meshpost::apps::Common {
  std::vector<std::string> places, variants;
  std::vector<meshpost::u64> sizes{meshpost::u64{64} << 20};
  unsigned repetitions = 5;
  meshpost::u64 seed = std::random_device{}();
  bool shared_memory = true;
  std::vector<meshpost::u32> cpu_nodes;  ///< of the processes; empty: as they were started
  bool predict = false;
  std::string what_if, against;  ///< files of machines
};

/// \return the exit status: 1 if something was wrong
int run(Options const& options);

}  // namespace bandwidth
