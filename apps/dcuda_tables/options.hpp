#pragma once
#include <vector>

#include "common/command.hpp"

namespace dcuda_tables {

using meshpost::u32;
using meshpost::u64;

/// The command line.
struct Options : meshpost::apps::Common {
  u32 repetitions = 5;
  u32 rounds = 0;  ///< of a repetition; 0: 10000 on GPUs, 200 on CPU devices
  std::vector<u64> sizes{4, 4 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20};
  bool mpi = false, engines = false;
};

/// \return the exit status: 1 if a message is wrong
int run(Options const& options);

}  // namespace dcuda_tables
