#pragma once
#include <string>
#include <vector>

#include "common/command.hpp"

namespace blas_stream {

using meshpost::u32;
using meshpost::u64;

struct Size {
  u64 m = 1024, n = 131072;
};

struct StreamOptions {
  Size size{};
  u64 chunk = 0;  ///< columns at a time
  u32 depth = 2;
  bool pageable = false;  ///< R and Q in ordinary memory, and a level of pinned memory before GPUs
  u64 seed = 1;
};

struct Sweep {
  std::vector<u64> chunks{};  ///< columns; empty: no sweep
  u32 repetitions = 5;
  bool check = true;
  std::string json{};  ///< file for the figures; empty: none
};

/// The command line.
struct Options : meshpost::apps::Common {
  StreamOptions stream{};
  u32 iterations = 5, plain = 1;
  std::string memory = "pinned", trace;
  bool stages = true;
  Sweep sweep{};
};

/// \return the exit status: 1 if a result is wrong
int run(Options options);

}  // namespace blas_stream
