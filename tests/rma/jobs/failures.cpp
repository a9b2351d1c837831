// A failure in a job ends all its processes, with one diagnosis.
#include <meshpost/meshpost.hpp>

#include "support/job.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::Role;
using testing::AllOf;
using testing::HasSubstr;

struct Nothing {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

// After a few rounds between all ranks, all wait for the last rank, which sends nothing.
struct Stuck {
  Window<int> inbox;
  enum class How : u32 { waits, fails, spins } how;
  MESHPOST_FN void operator()(Rank& self) const {
    for (int i = 0; i < 10; ++i) self.barrier();
    RankId const end{self.size() - 1};
    bool const last = self.id() == end;
    // It goes on when they wait, or are about to: otherwise they might still be leaving the
    // barrier.
    if (last) self.wait(inbox, Tag{0}, self.size() - 1);
    else self.notify(inbox, end, Tag{0});
    if (last && how == How::fails) self.fail("I will not");
    if (last && how == How::spins)
      while (!self.test(inbox, Tag{2})) {
      }
    if (last) self.wait(inbox, Tag{1}, 1, RankId{0});
    else self.wait(inbox, Tag{3}, 1, end);
  }
};

void stuck(Stuck::How how) {
  World world;
  auto const inbox = world.window<int>(1, Tags{4}, "inbox");
  print_error([&] { world.run(Stuck{inbox, how}); });
  world.run(Nothing{});  // the World is usable again
  std::printf("went on\n");
}
Role const deadlock("deadlock", [] { stuck(Stuck::How::waits); });
Role const failure("failure", [] { stuck(Stuck::How::fails); });
Role const standstill("standstill", [] { stuck(Stuck::How::spins); });

std::vector<test::Ended> errors_of(char const* role, u32 processes,
                                   test::Variables const& all = {}) {
  auto variables = all;
  variables.emplace("MESHPOST_RANKS", "2");
  test::Job job(role, processes, variables);
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("went on"));
  return ended;
}

TEST(JobFailure, a_deadlock_across_processes_is_found_at_once_and_told_to_all) {
  for (auto const& one : errors_of("deadlock", 3)) {
    EXPECT_THAT(one.out, AllOf(HasSubstr("[deadlock]"), HasSubstr("rank 5 waits for tag 1"),
                               HasSubstr("rank 0, which is expected to send it, waits itself")));
    EXPECT_LT(one.seconds, 20) << "not the deadline's 30 s";
  }
}

TEST(JobFailure, a_rank_that_fails_is_named_in_all_processes) {
  for (auto const& one : errors_of("failure", 3))
    EXPECT_THAT(
        one.out,
        AllOf(HasSubstr("[kernel failed]"), HasSubstr("rank 5 (process 2's "),
              HasSubstr("I will not"),
              HasSubstr("expected to send it, has failed")));  // of ranks that waited by then
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// Their counters, 280 MB, are more than processes may send in an exchange.
struct OneTagOfMany {
  Window<int> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    Tag const last{inbox.info().tags - 1};
    if (self.id() == 0) self.notify(inbox, RankId{self.size() - 1}, last);
    if (self.id() == self.size() - 1) self.wait(inbox, last, 2);
  }
};
Role const many_tags("many_tags", [] {
  World world;
  auto const inbox = world.window<int>(1, Tags{65536}, "inbox");
  print_error([&] { world.run(OneTagOfMany{inbox}); });
  world.run(Nothing{});
  std::printf("went on\n");
});

TEST(JobFailureCpuOnly, a_deadlock_of_many_ranks_with_many_tags_is_reported_as_such) {
  for (auto const& one :
       errors_of("many_tags", 2, {{"MESHPOST_RANKS", "90"}, {"MESHPOST_DEVICES", "cpu:2"}}))
    EXPECT_THAT(one.out, AllOf(HasSubstr("[deadlock]"),
                               HasSubstr("rank 359 waits for tag 65535 of window 'inbox', 1 of 2 "
                                         "arrived; rank 0, which sent it before, has ended")));
}
#endif

// Its first thread waits, and the other goes on: it is no deadlock, but the rank makes no progress.
struct Diverged {
  Window<int> inbox;
  MESHPOST_FN void operator()([[maybe_unused]] Rank& self) const {
#if !defined(__CUDA_ARCH__)
    if (self.thread() == 0) self.wait(inbox, Tag{0});
    else
      for (;;) cpu::fiber_yield(cpu::current_fiber());
#endif
  }
};
Role const diverged("diverged", [] {
  World world;
  auto const inbox = world.window<int>(1, Tags{1}, "inbox");
  print_error([&] { world.run(Diverged{inbox}, {.threads = {2, 1, 1}}); });
  world.run(Nothing{});
  std::printf("went on\n");
});

TEST(JobFailureCpuOnly, threads_of_a_rank_that_part_are_ended_after_the_deadline) {
  for (u32 const processes : {1, 2})
    for (auto const& one : errors_of("diverged", processes, {{"MESHPOST_DEADLINE", "1"}}))
      EXPECT_THAT(one.out, AllOf(HasSubstr("[deadline]"), HasSubstr("no rank got on for 1 s"),
                                 HasSubstr("rank 1 waits for tag 0 of window 'inbox'")));
}

TEST(JobFailure, a_standstill_is_ended_after_the_deadline) {
  for (auto const& one : errors_of("standstill", 2, {{"MESHPOST_DEADLINE", "1"}}))
    EXPECT_THAT(one.out, AllOf(HasSubstr("[deadline]"), HasSubstr("no rank got on for 1 s")));
}

// -- processes that don't do the same

void differ(std::function<void(World&, bool odd)> const& work) {
  World world;
  print_error([&] { work(world, world.process() == 1); });
}
Role const other_window("other_window", [] {
  differ([](World& world, bool odd) { world.window<int>(odd ? 5 : 7, Tags{1}, "table"); });
});
struct Other {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};
Role const other_kernel("other_kernel", [] {
  differ([](World& world, bool odd) {
    if (odd) world.run(Other{});
    else world.run(Nothing{});
  });
});
Role const other_threads("other_threads", [] {
  differ([](World& world, bool odd) { world.run(Nothing{}, {.threads = {odd ? 2u : 1u, 1, 1}}); });
});
Role const other_call("other_call", [] {
  differ([](World& world, bool odd) {
    if (odd) world.run(Nothing{});
    else world.window<int>(1, Tags{1}, "late");
  });
});
Role const other_split("other_split", [] {
  differ([](World& world, bool odd) {
    world.split(world.communicator(), [odd](RankId r) { return i64{r % (odd ? 2 : 3)}; });
  });
});
Role const leaves("leaves", [] {
  World world;
  world.run(Nothing{});
  if (world.process() == 1) return;
  print_error([&] { world.run(Nothing{}); });
});
Role const too_large("too_large", [] {
  World world;
  print_error([&] { world.window<char>(u64{1} << 50, Tags{1}, "huge"); });
  world.run(Nothing{});
});
void refuse_memory(std::function<std::span<int>(World&)> const& of_own, bool for_others) {
  World world;
  std::vector<std::span<int>> parts(world.size());
  u32 const rank = for_others ? world.size() - 1 - world.first_rank() : world.first_rank();
  if (world.process() == 1) parts[rank] = of_own(world);
  print_error([&] { world.register_memory(parts); });
  auto const memory = World::allocate(*world.devices()[0], Bytes{4});  // it goes on
  parts.assign(world.size(), {});
  parts[world.first_rank()] = {memory.as<int>(), 1};
  world.free(world.register_memory(parts));
  world.run(Nothing{});
}
Role const memory_of_nobody("memory_of_nobody", [] {
  static std::vector<int> numbers(10);
  refuse_memory([](World&) { return std::span(numbers); }, false);
});
Role const memory_for_others("memory_for_others", [] {
  static Allocation memory;
  refuse_memory(
      [](World& world) {
        memory = World::allocate(*world.devices()[0], Bytes{40});
        return std::span(memory.as<int>(), 10);
      },
      true);
});
Role const too_much_memory("too_much_memory", [] {
  static Allocation memory;
  refuse_memory(
      [](World& world) {
        memory = World::allocate(*world.devices()[0], Bytes{40});
        return std::span(memory.as<int>(), u64{1} << 26);
      },
      false);
});
Role const fewer_parts("fewer_parts", [] {
  differ([](World& world, bool odd) {
    world.register_memory(std::vector<std::span<int>>(world.size() - (odd ? 1 : 0)));
  });
});
// Afterwards the window is usable as before.
Role const foreign_free("foreign_free", [] {
  World world, other;
  auto const memory = World::allocate(*world.devices()[0], Bytes{4});
  std::vector<std::span<int>> parts(world.size());
  parts[world.first_rank()] = {memory.as<int>(), 1};
  auto const window = world.register_memory(parts), foreign = other.register_memory(parts);
  print_error([&] { world.free(world.process() == 1 ? foreign : window); });
  int const number = 7;
  for (RankId const rank : {RankId{0}, RankId{3}}) window.write(rank, 0, std::span(&number, 1));
  test::require(window.read(RankId{0})[0] == 7, "what was written");
  world.run(Nothing{});
  world.free(window);
});
Role const memory_of_one("memory_of_one", [] {
  differ([](World& world, bool odd) {
    if (odd) world.register_memory(std::vector<std::span<int>>(world.size()));
    else world.window<int>(0);
  });
});
Role const world_fails("world_fails", [] { print_error([] { World const world; }); });

struct Case {
  char const* role;
  std::vector<std::string> pieces;
};

TEST(JobMisuse, names_who_differs) {
  for (auto const& [role, pieces] : {
           Case{"other_window", {"'table' of 5 elements", "'table' of 7 elements", "[misuse]"}},
           Case{"other_kernel", {"launch meshpost::Other", "launch meshpost::Nothing", "[misuse]"}},
           Case{"other_threads", {"2 x 1 x 1 threads", "1 x 1 x 1 threads", "[misuse]"}},
           Case{"other_call", {"launch meshpost::Nothing", "make window 'late'", "[misuse]"}},
           Case{"other_split", {"into 2 groups", "into 3 groups", "[misuse]"}},
           Case{"too_large", {"out of memory"}},
           Case{"memory_for_others",
                {"register_memory", "rank 2's part", "memory of process 0's", "own ranks"}},
           Case{"too_much_memory",
                {"register_memory", "rank 3's part", "67108864 elements of 4 bytes",
                 "ends after 40 bytes"}},
           Case{"fewer_parts", {"for 5 ranks", "for 6 ranks", "[misuse]"}},
           Case{"foreign_free", {"free", "window 2 of world", "does not exist"}},
           Case{"memory_of_one", {"in memory of the user", "[misuse]"}},
       }) {
    test::Job job(role, 2, {{"MESHPOST_RANKS", "3"}});
    auto const ended = job.wait();
    test::expect_well(ended);
    for (auto const& one : ended)
      for (auto const& piece : pieces) EXPECT_THAT(one.out, HasSubstr(piece)) << role;
  }
}

TEST(JobMisuse, memory_that_others_can_not_map_is_refused_with_what_to_do) {
  bool const far = std::getenv("MESHPOST_TEST_NODES") || std::getenv("MESHPOST_REACH") ||
                   std::getenv(test::hosts_variable);
  if (far && !test::on_gpus()) GTEST_SKIP() << "nobody maps it";
  test::Job job("memory_of_nobody", 2, {{"MESHPOST_RANKS", "3"}});
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended)
    EXPECT_THAT(one.out,
                AllOf(HasSubstr("register_memory"), HasSubstr("rank 3's part"),
                      HasSubstr(test::on_gpus() ? "give memory of cuda" : "World::allocate")));
}

TEST(JobMisuse, a_process_that_leaves_while_others_call_is_named) {
  test::Job job("leaves", 3, {{"MESHPOST_RANKS", "1"}});
  auto const ended = job.wait();
  test::expect_well(ended);
  for (u32 const process : {0, 2})
    EXPECT_THAT(ended[process].out,
                AllOf(HasSubstr("process 1"),  // between nodes all processes end a World together
                      testing::AnyOf(AllOf(HasSubstr("it has ended"), HasSubstr("[peer lost]")),
                                     AllOf(HasSubstr("'end the World'"), HasSubstr("[misuse]")))));
}

TEST(JobMisuse, worlds_that_differ_are_refused) {
  struct Wrong {
    char const *variable, *one, *other;
    std::vector<std::string> pieces;
  };
  for (auto const& [variable, one, other, pieces] : {
           Wrong{"MESHPOST_RANKS", "2", "3", {"asks for 2 ranks", "for 3", "[bad argument]"}},
           Wrong{
               "MESHPOST_LANES", "2", "3", {"asks for 2 lanes", "process 1 for 3", "bad argument"}},
           Wrong{"MESHPOST_DEVICES", "none", "none", {"no process has devices"}},
           Wrong{"MESHPOST_DEVICES", "cpu:1", "tape:1", {"no kind of device called 'tape'"}},
           Wrong{"MESHPOST_CHECK", "delivery", "delivery", {"within one process only"}},
       }) {
    test::Job job("world_fails", 2, {}, [&](u32 process) -> test::Variables {
      return {{variable, process == 0 ? one : other}};
    });
    auto const ended = job.wait();
    test::expect_well(ended);
    for (auto const& each : ended)
      for (auto const& piece : pieces) EXPECT_THAT(each.out, HasSubstr(piece)) << variable;
  }
}

}  // namespace
}  // namespace meshpost
