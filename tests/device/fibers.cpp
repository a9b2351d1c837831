// Ranks of CPU devices: threads of a rank as fibers, their exceptions, thousands of them.
#include <atomic>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/host_hooks.hpp"
#include "support/errors.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

struct Meet {  // every thread sees what all others stored before the meeting
  Window<u32> board;
  u32 rounds;
  test::Findings findings;
  void operator()(Rank& self) const {
    auto const mine = board.local(self);
    for (u32 round = 1; round <= rounds; ++round) {
      mine[self.thread()] = round * 1000 + self.thread();
      self.sync();
      u32 const other = (self.thread() * 7 + round) % self.threads();
      findings.add(self, mine[other] != round * 1000 + other);
      self.sync();
    }
  }
};

TEST(Fibers, of_a_rank_meet) {
#if defined(__SANITIZE_THREAD__)
  constexpr u32 most = 256;  // which take it seconds
#else
  constexpr u32 most = 1024;
#endif
  for (Dim3 const threads :
       {Dim3{2, 1, 1}, Dim3{128, 1, 1}, Dim3{4, 2, 2}, Dim3{1, 1, 64}, Dim3{most, 1, 1}}) {
    World world(test::options(2, "cpu:2"));
    auto const findings = test::make_findings(world);
    world.run(Meet{world.window<u32>(1024), 6, findings}, {.threads = threads});
    EXPECT_EQ(test::total(world, findings), 0u);
  }
}

std::atomic<bool> may_end;

// In the last rank one thread computes, and the other waits for it.
void two_threads(void const*, void const*, Block block, u32 rank, void*) {
  while (rank == 2 && block.thread() == 1 && !may_end) continue;
  block.sync();
}

TEST(Fibers, that_run_on_a_core_are_known_by_rank) {
  may_end = false;
  RankReport reports[3] = {};
  Control control = {};
  LaunchSpec spec;
  spec.image.cpu = two_threads;
  spec.threads = {2, 1, 1};
  spec.workers = 1;
  spec.grids = {{backend("cpu").open(0), 3, 10, nullptr, reports, &control}};
  auto const launch = backend("cpu").launch(spec);
  EXPECT_FALSE(launch->answers());
  while (launch->running_ranks() != std::vector<u32>{12}) std::this_thread::yield();
  may_end = true;
  while (!launch->finished()) launch->doze(std::chrono::milliseconds(1));
  EXPECT_TRUE(launch->running_ranks().empty());
}

struct Start {
  Window<u32> started;
  void operator()(Rank& self) const {
    started.local(self)[self.thread()] = 1;
    self.sync();
  }
};

TEST(Fibers, may_be_many_thousands) {  // 208 ranks of 128 threads, as the thesis runs them
#if defined(__SANITIZE_THREAD__)
  u32 const threads = 8;  // TSan has room for 8128 threads and fibers, and is slow for each
#else
  u32 const threads = 128;
#endif
  World world(test::options(208, "cpu:1"));
  auto const started = world.window<u32>(threads, Tags{0});
  world.run(Start{started}, {.threads = {threads, 1, 1}});
  for (u32 r = 0; r < world.size(); ++r)
    ASSERT_EQ(started.read(RankId{r}), std::vector<u32>(threads, 1));
}

struct AnyOf {
  u32 round_count;
  test::Findings findings;
  void operator()(Rank& self) const {
    auto block = Block(cpu::current_fiber(), nullptr, nullptr);
    for (u32 round = 0; round < round_count; ++round) {
      u32 const who = round % (self.threads() + 1);  // sometimes no thread
      bool const expected = who < self.threads();
      findings.add(self, block.any(self.thread() == who) != expected);
    }
  }
};

TEST(Fibers, say_whether_any_of_them_says_yes) {
  World world(test::options(2, "cpu:1"));
  auto const findings = test::make_findings(world);
  for (u32 const threads : {1u, 2u, 5u, 32u})
    world.run(AnyOf{200, findings}, {.threads = {threads, 1, 1}});
  EXPECT_EQ(test::total(world, findings), 0u);
}

struct WaitInCatch {  // each rank handles an exception of its own while others handle theirs
  Window<u32> window;
  test::Findings findings;
  void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    for (u32 round = 0; round < 20; ++round) {
      auto const text = std::to_string(self.id()) + "/" + std::to_string(round);
      try {
        throw std::runtime_error(text);
      } catch (std::runtime_error const& error) {
        findings.add(self, std::uncaught_exceptions() != 0);
        self.notify(window, next, Tag{0});
        self.wait(window, Tag{0});
        findings.add(self, error.what() != text);
        try {
          throw;  // the one of this rank, not of a rank that ran meanwhile
        } catch (std::exception const& again) {
          self.notify(window, next, Tag{1});
          self.wait(window, Tag{1});
          findings.add(self, again.what() != text);
        }
      }
      self.sync();
    }
  }
};

TEST(Fibers, may_wait_inside_of_a_catch_block) {
  World world(test::options(4, "cpu:2"));
  auto const findings = test::make_findings(world);
  world.run(WaitInCatch{world.window<u32>(0), findings});
  EXPECT_EQ(test::total(world, findings), 0u);
}

struct Cleanup {
  Window<u32> window;
  std::atomic<int>* destroyed;
  void operator()(Rank& self) const {
    struct Guard {
      std::atomic<int>* count;
      ~Guard() { ++*count; }
    } const guard{destroyed};
    self.wait(window, Tag{0});
  }
};

TEST(Fibers, of_a_poisoned_run_unwind) {
  World world(test::options(3, "cpu:2"));
  std::atomic<int> destroyed{0};
  EXPECT_TRUE(says(error_of([&] { world.run(Cleanup{world.window<u32>(0), &destroyed}); }),
                   Kind::deadlock, {}));
  EXPECT_EQ(destroyed, 6);
}

enum class Thrown { standard, error, number };
struct Throws {
  Window<u32> window;
  Thrown what;
  void operator()(Rank& self) const {
    if (self.id() == 2 && self.thread() == self.threads() - 1) {
      if (what == Thrown::standard) throw std::runtime_error("the file is empty");
      if (what == Thrown::error)
        throw Error(Kind::bad_argument, "solve", "no convergence", "more steps");
      throw 42;
    }
    self.wait(window, Tag{1}, 1, RankId{2});
  }
};

TEST(Fibers, whose_kernel_throws_end_the_run_with_the_exceptions_text) {
  World world(test::options(3, "cpu:2"));
  auto const window = world.window<u32>(0);
  for (Dim3 const threads : {Dim3{0, 1, 1}, Dim3{8, 1, 1}}) {
    EXPECT_TRUE(
        says(error_of([&] { world.run(Throws{window, Thrown::standard}, {.threads = threads}); }),
             Kind::kernel_failed,
             {"kernel in", "Throws on rank 2 (cpu:0)", "the file is empty", "catch it"}));
    EXPECT_TRUE(
        says(error_of([&] { world.run(Throws{window, Thrown::error}, {.threads = threads}); }),
             Kind::kernel_failed, {"solve: no convergence; more steps [bad argument]"}));
    EXPECT_TRUE(
        says(error_of([&] { world.run(Throws{window, Thrown::number}, {.threads = threads}); }),
             Kind::kernel_failed, {"something that is not a std::exception"}));
  }
}

struct SomeThreadsStayAway {
  void operator()(Rank& self) const {
    if (self.thread() != 3) self.sync();
  }
};

TEST(Fibers, of_which_one_does_not_come_to_the_meeting_are_a_deadlock) {
  World world(test::options(1, "cpu:1"));
  EXPECT_TRUE(says(error_of([&] { world.run(SomeThreadsStayAway{}, {.threads = {8, 1, 1}}); }),
                   Kind::deadlock, {"SomeThreadsStayAway"}));
}

thread_local u32 of_this_thread = 0;
struct ThreadLocal {
  Window<u32> window;
  test::Findings findings;
  void operator()(Rank& self) const {
    of_this_thread = self.id() + 1;
    for (int i = 0; i < 10; ++i) {
      self.notify(window, RankId{(self.id() + 1) % self.size()}, Tag{0});
      self.wait(window, Tag{0});
      findings.add(self, of_this_thread != self.id() + 1);
    }
  }
};

TEST(Fibers, have_a_thread_of_their_own_where_the_program_wants_it) {
  World world(test::options(4, "cpu:2"));
  auto const findings = test::make_findings(world);
  world.run(ThreadLocal{world.window<u32>(0), findings}, {.thread_a_rank = true});
  EXPECT_EQ(test::total(world, findings), 0u);
}

struct Barriers {
  void operator()(Rank& self) const { self.barrier(); }
};

TEST(Fibers, whose_worker_threads_cannot_be_started_are_refused) {
  World world(test::options(200, "cpu:1"));
  world.run(Barriers{});
  std::atomic<u32> threads{0};
  hooks::install_host_hook([&](std::string_view place) {
    if (place == "start a worker's thread" && ++threads > 12)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  auto const error = error_of([&] { world.run(Barriers{}, {.thread_a_rank = true}); });
  hooks::install_host_hook(nullptr);
  EXPECT_TRUE(says(error, Kind::out_of_memory,
                   {"of 200 worker threads could be started", "fewer workers"}));
  world.run(Barriers{});
  world.run(Barriers{}, {.thread_a_rank = true});
}

struct Recurse {
  Window<u32> window;
  void operator()(Rank& self) const { use_stack(self, 300); }
  u32 use_stack(Rank& self,
                u32 depth) const {  // 300 KB of the 512 KB that a rank of one thread has
    volatile char space[1024];
    space[depth] = static_cast<char>(depth);
    if (depth == 0) {
      self.notify(window, self.id(), Tag{0});
      self.wait(window, Tag{0});
      return 0;
    }
    return use_stack(self, depth - 1) + static_cast<u32>(space[depth]);
  }
};

TEST(Fibers, of_a_rank_with_one_thread_have_room_for_arrays) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make frames larger";
#endif
  World world(test::options(8, "cpu:1"));
  world.run(Recurse{world.window<u32>(0)});
}

}  // namespace
}  // namespace meshpost
