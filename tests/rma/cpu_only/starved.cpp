// Ranks whose thread gets no processor are not held to the deadline: other programs or the host of
// a virtual machine may have it. Here a thread of the test takes it.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/errors.hpp"
#include "support/own_threads.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;

// The calling thread gets a processor only if no other thread wants it.
void take_what_is_left_of(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_param const none{};
  EXPECT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
  EXPECT_EQ(pthread_setschedparam(pthread_self(), SCHED_IDLE, &none), 0);
}

// Rank 0, while rank 1 waits for it. It needs less of a processor than an eighth of the deadline.
struct ComputesOnABusyCore {
  Window<u32> window;
  int core;
  std::atomic<int>* thread;
  void operator()(Rank& self) const {
    if (self.id() != 0) return self.wait(window, Tag{0});
    take_what_is_left_of(core);
    thread->store(gettid());
    thread->notify_one();
    for (auto const begin = test::own_processor_time();
         test::own_processor_time() - begin < 30ms;) {
    }
    self.notify(window, RankId{1}, Tag{0});
  }
};

struct Sleeps {
  Window<u32> window;
  void operator()(Rank& self) const {
    if (self.id() != 0) return self.wait(window, Tag{0});
    std::this_thread::sleep_for(2s);
    self.notify(window, RankId{1}, Tag{0});
  }
};

class StarvedRank : public testing::Test {
 protected:
  static WorldOptions wanted() {
    auto wanted = test::options(2, "cpu:1");
    wanted.workers = 2;
    wanted.deadline = 400ms;
    return wanted;
  }
  World world{wanted()};
  Window<u32> window = world.window<u32>(1);
};

TEST_F(StarvedRank, is_not_held_to_the_deadline) {
  int const core = sched_getcpu();
  std::atomic<int> thread{0};
  std::jthread const busy([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    thread.wait(0);
    for (auto const begin = test::own_processor_time();
         test::own_processor_time() - begin < 800ms;) {
    }
    sched_param const none{};
    sched_setscheduler(thread.load(), SCHED_OTHER, &none);  // other tests may want the core, too
  });
  EXPECT_NO_THROW(world.run(ComputesOnABusyCore{window, core, &thread}));
  int none = 0;
  if (thread.compare_exchange_strong(none, -1)) thread.notify_one();  // it has not begun
}

TEST_F(StarvedRank, that_sleeps_is_not_starved) {
  EXPECT_EQ(test::error_of([&] { world.run(Sleeps{window}); }).kind(), Kind::deadline);
}

}  // namespace
}  // namespace meshpost
