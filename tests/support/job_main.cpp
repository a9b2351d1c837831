// The main of tests that start jobs: it runs the requested role, else tests.
#include <cstdio>
#include <cstdlib>

#include "support/job.hpp"

int main(int count, char** values) {
  if (char const* const role = std::getenv("MESHPOST_TEST_ROLE")) {
    try {
      meshpost::test::play(role);
    } catch (std::exception const& error) {
      std::printf("uncaught: %s\n", error.what());
      return 1;
    }
    return 0;
  }
  testing::InitGoogleTest(&count, values);
  return RUN_ALL_TESTS();
}
