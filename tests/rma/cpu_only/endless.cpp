// A kernel that never calls the library can't be ended. The process is ended, with a message that
// names the rank. Takes 10 s.
#include "support/errors.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

struct Endless {
  Window<u32> window;
  void operator()(Rank& self) const {
    if (self.id() == 1)
      for (std::atomic<u64> i{0};; ++i) {
      }
    self.wait(window, Tag{0});
  }
};

TEST(EndlessLoop, that_calls_nothing_ends_the_process_and_names_the_rank) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        auto wanted = test::options(2, "cpu:1");
        wanted.workers = 2;
        wanted.deadline = std::chrono::milliseconds(200);
        World world(wanted);
        world.run(Endless{world.window<u32>(1)});
      },
      testing::ExitedWithCode(EXIT_FAILURE),
      "10 s later. Threads of rank 1 call no meshpost operation\\..*endless loop");
}

}  // namespace
}  // namespace meshpost
