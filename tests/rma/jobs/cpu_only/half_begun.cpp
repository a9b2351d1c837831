// If a process fails between the agreed launch of a run and its end, the others do not wait for
// ever. All end with its error, and the World goes on.
#include <meshpost/meshpost.hpp>

#include <atomic>
#include <new>
#include <stdexcept>
#include <system_error>

#include "base/host_hooks.hpp"
#include "support/job.hpp"
#include "support/withdrawn.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::Role;
using testing::AllOf;
using testing::HasSubstr;

struct MeetTwice {
  MESHPOST_FN void operator()(Rank& self) const {
    self.barrier();
    self.barrier();
  }
};
struct TellTheNext {  // a notification and a few bytes each
  Window<u32> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    auto const mine = inbox.local(self);
    if (self.thread() == 0) mine[1] = self.id();
    self.put_notify(inbox.at(next, 0), mine.subspan(1, 1), Tag{0});
    self.wait(inbox, Tag{0});
    if (self.test(inbox, Tag{0})) self.fail("nobody sent this");
    self.barrier();
  }
};

[[noreturn]] void no_thread() {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}

bool is_process_1() { return std::string(std::getenv("MESHPOST_PROCESS")) == "1"; }

// At the next time that process 1 reaches this place.
void fail_once_at(std::string_view place, std::function<void()> failure) {
  if (!is_process_1()) return;
  auto const left = std::make_shared<std::atomic<int>>(1);
  hooks::install_host_hook([=](std::string_view here) {
    if (here == place && left->fetch_sub(1) == 1) failure();
  });
}

void run_that_fails_at(std::string_view place, std::function<void()> const& failure) {
  World world(test::world_options());
  auto const inbox = world.window<u32>(2, Tags{1}, "inbox");
  world.run(TellTheNext{inbox});
  fail_once_at(place, failure);
  print_error([&] { world.run(TellTheNext{inbox}); });
  world.run(MeetTwice{});
  world.run(TellTheNext{inbox});
  std::printf("went on\n");
}

Role const unprepared("unprepared",
                      [] { run_that_fails_at("prepare a run", [] { throw std::bad_alloc(); }); });
Role const without_worker("without_worker",
                          [] { run_that_fails_at("start a worker's thread", no_thread); });

// Checks the end of a job: each process must print these texts.
void expect_in_all(test::Job& job, std::initializer_list<char const*> texts) {
  auto const ended = job.wait();
  test::expect_well(ended);
  for (u32 process = 0; process < ended.size(); ++process) {
    for (auto const* const text : texts) EXPECT_THAT(ended[process].out, HasSubstr(text));
    if (process != 1) {
      EXPECT_THAT(ended[process].out, HasSubstr("in process 1"));
    }
  }
}

TEST(JobHalfBegunCpuOnly, run_ends_in_all_processes_where_one_can_not_prepare_it) {
  test::Job job("unprepared", 3, {{"MESHPOST_RANKS", "2"}});
  expect_in_all(job, {"[out of memory]", "the host's memory is used up", "went on"});
}

TEST(JobHalfBegunCpuOnly, run_ends_in_all_processes_where_one_gets_no_worker) {
  test::Job job("without_worker", 3, {{"MESHPOST_RANKS", "2"}});
  expect_in_all(job, {"[out of memory]", "worker threads could be started", "went on"});
}

Role const with_broken_device("with_broken_device", [] {
  run_that_fails_at("part from a device", [] {
    throw Error(Kind::device_failed, "part", "the device is broken", "see its log");
  });
});

TEST(JobHalfBegunCpuOnly, run_ends_in_all_processes_where_a_device_breaks_at_its_end) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("with_broken_device", 3, {{"MESHPOST_RANKS", "2"}}, [](u32 process) {
    return test::Variables{{"MESHPOST_NODE", std::to_string(process)}};
  });
  expect_in_all(job, {"[device failed]", "the device is broken", "went on"});
}

// Each process brings memory filled with `value`, and finds the memory of the others.
void share_memory(World& world, u32 value) {
  auto const mine = World::allocate(*world.devices()[0], Bytes{16 * sizeof(u32)});
  std::fill_n(mine.as<u32>(), 16, value + world.process());
  std::vector<std::span<u32>> parts(world.size());
  parts[world.process()] = {mine.as<u32>(), 16};
  auto const window = world.register_memory(parts);
  for (u32 process = 0; process < world.processes(); ++process)
    test::require(window.read(RankId{process})[15] == value + process,
                  "what its process has brought");
  world.free(window);
}

Role const without_files("without_files", [] {
  World world(test::world_options());
  fail_once_at("take files of others", [] {
    throw Error(Kind::bad_environment, "share memory", "no file is to be had", "wait");
  });
  print_error([&] { share_memory(world, 10); });
  share_memory(world, 20);
  std::printf("went on\n");
});

TEST(JobHalfBegunCpuOnly, files_that_a_process_did_not_take_are_not_the_next_ones) {
  test::Job job("without_files", 3, {{"MESHPOST_RANKS", "1"}});
  expect_in_all(job, {"no file is to be had", "went on"});
}

void world_without_thread(std::string_view place) {
  fail_once_at(place, no_thread);
  print_error([] { World const world(test::world_options()); });
  World world(test::world_options());
  world.run(MeetTwice{});
  std::printf("went on\n");
}
Role const without_supervisor("without_supervisor",
                              [] { world_without_thread("start the supervisor's thread"); });
Role const without_proxy("without_proxy", [] { world_without_thread("start the proxy's thread"); });
Role const without_answers("without_answers",
                           [] { world_without_thread("start a thread to serve a World"); });

TEST(JobHalfBegunCpuOnly, world_is_made_by_all_processes_or_none) {
  test::Job job("without_supervisor", 3);
  expect_in_all(job, {"[out of memory]", "no thread could be started", "went on"});
}

TEST(JobHalfBegunCpuOnly, world_of_several_nodes_is_made_by_all_processes_or_none) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  for (char const* const role : {"without_proxy", "without_answers"}) {
    test::Job job(role, 3, {{"MESHPOST_RANKS", "2"}}, [](u32 process) {
      return test::Variables{{"MESHPOST_NODE", std::to_string(process)}};
    });
    expect_in_all(job, {"[out of memory]", "no thread could be started", "went on"});
  }
}

Role const without_room("without_room", [] {
  World world(test::world_options());
  fail_once_at("grow a device's memory",
               [] { throw Error(Kind::out_of_memory, "grow", "nothing is left", "wait"); });
  constexpr u64 count = u64{1} << 20;  // more than the initial heap has
  print_error([&] { world.window<u32>(count, Tags{1}, "large"); });
  for (int i = 0; i < 2; ++i) {
    auto const window = world.window<u32>(count, Tags{1}, "large");
    world.run(TellTheNext{window});
  }
  std::printf("went on\n");
});

TEST(JobHalfBegunCpuOnly, window_is_made_after_one_that_one_process_had_no_room_for) {
  test::Job job("without_room", 3, {{"MESHPOST_RANKS", "1"}});
  expect_in_all(job, {"[out of memory]", "nothing is left", "went on"});
}

void leave(World& world, Window<char> const& window, bool gets) {
  test::Moments moments;
  if (world.process() == 0)
    hooks::install_host_hook([&, gets](std::string_view place) {
      if (place == test::FreesWhatIsUnderWay::place(gets)) moments.meet();
    });
  print_error([&] { world.run(test::FreesWhatIsUnderWay{window, gets, &moments}); });
  hooks::install_host_hook(nullptr);
}
Role const leaves_while_it_moves("leaves_while_it_moves", [] {
  auto options = test::world_options();
  options.ranks = 2;
  options.workers = 1;
  World world(options);
  auto const window = world.window<char>(test::Pages::size, Tags{1}, "far");
  leave(world, window, false);
  leave(world, window, true);
  world.run(MeetTwice{});
  std::printf("went on\n");
});

TEST(JobWithdrawnCpuOnly, memory_of_a_rank_that_left_is_not_touched_between_nodes) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("leaves_while_it_moves", 2, {}, [](u32 process) {
    return test::Variables{{"MESHPOST_NODE", std::to_string(process)},
                           {"MESHPOST_DEVICES", "cpu:1"}};
  });
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended)
    EXPECT_THAT(one.out, AllOf(HasSubstr("[kernel failed]"), HasSubstr("the input is odd"),
                               HasSubstr("went on")));
}

struct LogsThenMeets {
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 1) self.log("rank {}", self.id());
    self.barrier();
    if (self.id() == 0) return;
    self.barrier();  // never completed
  }
};
struct NoRoomForLogs : EventSink {
  void warning(std::string_view) override {}
  void log(unsigned, std::string_view) override { throw std::runtime_error("the disk is full"); }
};
Role const with_a_full_disk("with_a_full_disk", [] {
  World world(test::world_options());
  auto const before = is_process_1() ? set_event_sink(std::make_shared<NoRoomForLogs>()) : nullptr;
  print_error([&] { world.run(LogsThenMeets{}); });
  if (is_process_1()) set_event_sink(before);
  world.run(MeetTwice{});
  std::printf("went on\n");
});

TEST(JobHalfBegunCpuOnly, run_ends_in_all_processes_where_one_can_not_log) {
  test::Job job("with_a_full_disk", 3, {{"MESHPOST_RANKS", "1"}});
  expect_in_all(job, {"[misuse]", "print what a rank logged", "the disk is full", "went on"});
}

}  // namespace
}  // namespace meshpost
