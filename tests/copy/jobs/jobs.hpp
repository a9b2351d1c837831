#pragma once
#include "support/job.hpp"

namespace meshpost::test {

/// A variable that makes a process of a test's job one that the system lets read and write no other
/// process's memory.
constexpr char const* without_other_memory = "MESHPOST_TEST_WITHOUT_OTHER_MEMORY";

/// Whether processes can act as if they were on other nodes: the library was built with an engine.
constexpr bool network = MESHPOST_TEST_NETWORK;

}  // namespace meshpost::test
