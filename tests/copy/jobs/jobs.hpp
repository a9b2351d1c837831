#pragma once
#include "support/job.hpp"

namespace meshpost::test {

/// This variable makes a test's process one that may not read or write other processes' memory.
constexpr char const* without_other_memory = "MESHPOST_TEST_WITHOUT_OTHER_MEMORY";

/// True if processes can act as if they were on other nodes: the library was built with an engine.
constexpr bool network = MESHPOST_TEST_NETWORK;

}  // namespace meshpost::test
