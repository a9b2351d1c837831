#pragma once
#include <meshpost/meshpost.hpp>

#include <string>
#include <vector>

#include "common/study/samples.hpp"
#include "options.hpp"

namespace dcuda_tables {

/// Times of messages of one size: one way for notified access, there and back for bandwidth.
struct Timed {
  u64 bytes;  ///< of a message
  u32 pairs;  ///< of ranks that send at the same time
  u32 rounds;
  meshpost::apps::Samples seconds;
};

struct Measured {
  Timed notify, access;          ///< one way
  std::vector<Timed> bandwidth;  ///< a put and its acknowledgement, of the slowest pair
  std::vector<Timed> host;       ///< round trips: by a flag, then by notifications
  u64 wrong = 0;                 ///< bytes of this process that are not as sent
};

/// Between the two halves of the ranks: of the only device, or of two processes' devices. `host`
/// only if the process is alone. The times are process 0's. Collective.
/// \throws Error(bad_argument) if the ranks form no two such halves; what World::run throws
Measured measure(meshpost::World& world, Options const& options);

}  // namespace dcuda_tables
