// Copies that wait for a stopped process delay no others. A process that gets no thread.
#include <unistd.h>
#include <meshpost/copy/job_memory.hpp>

#include <csignal>
#include <fstream>
#include <new>
#include <thread>

#include "base/no_threads.hpp"
#include "copy/jobs/jobs.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::expect_well;
using test::print_error;
using test::require;
using test::Role;
using testing::AllOf;
using testing::HasSubstr;

JobMemoryOptions by_messages() {
  JobMemoryOptions options;
  options.fastest = CopyPath::staged;
  return options;
}

void stop_and_wait(pid_t process) {
  require(kill(process, SIGSTOP) == 0, "it can be stopped");
  for (std::string state; state != "T"; std::this_thread::yield()) {
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string number, name;
    stat >> number >> name >> state;
  }
}

Role const copies_with_a_stopped_process("copies_with_a_stopped_process", [] {
  JobMemory job(by_messages());
  pid_t number = getpid();
  std::vector<u8> mine(6400, static_cast<u8>(job.process() + 1));
  auto const numbers = job.expose(&number, Bytes{sizeof number}, "numbers");
  auto const field = job.expose(mine.data(), Bytes{mine.size()}, "field");
  auto const meet = [&] { auto const meeting = job.expose(nullptr, Bytes{}, "meet"); };
  meet();
  if (job.process() == 1) return meet();
  pid_t other = 0;
  copy(&other, numbers.at(1, 0, Bytes{sizeof other}));
  stop_and_wait(other);

  // More of each sort than there are threads for copies of one kind.
  constexpr u32 each = 20;
  auto const range = field.at(1, 0, Bytes{6400});
  std::vector<std::vector<u8>> here(4 * each, std::vector<u8>(6400));
  auto const device = open_devices("cpu:1")[0];
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Copy> waiting;
  std::vector<std::shared_ptr<Event>> events;
  for (u32 i = 0; i < each; ++i) {
    auto* const to = &here[4 * i];
    BlockShape const rows{Bytes{64}, 100, 1};
    waiting.push_back(copy_async(to[0].data(), {Bytes{64}, {}}, range, {Bytes{64}, {}}, rows));
    streams.push_back(device->make_stream());
    waiting.push_back(copy_async(to[1].data(), range, {{streams.back().get()}}));
    waiting.push_back(get_batch(std::vector<RemoteGet>{{to[2].data(), range}}));
    events.push_back(waiting.back().event());
    waiting.push_back(
        get_batch(std::vector<RemoteGet>{{to[3].data(), field.at(1, 0, Bytes{3200})},
                                         {to[3].data() + 3200, field.at(1, 3200, Bytes{3200})}}));
    events.push_back(waiting.back().event());
  }
  // A list with an order, and a copy after a stream: such a thread executes both.
  std::vector<u8> from(1000, 9), to(1000);
  copy_batch(std::vector<Segment>{{to.data(), from.data(), Bytes{1000}},
                                  {to.data() + 500, from.data(), Bytes{500}}})
      .wait();
  auto const local = device->make_stream();
  copy_async(from.data(), to.data(), Bytes{1000}, {{local.get()}}).wait();
  require(to == std::vector<u8>(1000, 9), "local copies are made meanwhile");
  for (auto const& one : waiting) require(!one.done(), "the others wait");

  require(kill(other, SIGCONT) == 0, "it goes on");
  for (auto& one : waiting) one.wait();
  for (auto const& event : events) event->wait();
  for (auto const& one : here) require(one == std::vector<u8>(6400, 2), "then all arrive");
  meet();
});

TEST(JobCopyStopped, processes_hold_up_no_copies_of_others) {
  test::Job job("copies_with_a_stopped_process", 2, {{"MESHPOST_NODE", "one"}});
  expect_well(job.wait());
}

Role const exposes_without_a_thread("exposes_without_a_thread", [] {
  JobMemory job(by_messages());
  std::vector<u8> mine(100, static_cast<u8>(job.process())), here(100);
  for (bool const memory_is_short : {false, true}) {
    test::NoThreads const none([&](std::string_view purpose) {
      bool const refused = job.process() == 1 && purpose == "serve a JobMemory";
      if (refused && memory_is_short) throw std::bad_alloc();
      return refused;
    });
    print_error([&] { job.expose(mine.data(), Bytes{100}, "field"); });
  }
  auto const field = job.expose(mine.data(), Bytes{100}, "field");  // in slots that are free again
  copy(here.data(), field.at(1, 0, Bytes{100}));
  require(here == std::vector<u8>(100, 1), "it goes on");
  auto const meeting = job.expose(nullptr, Bytes{}, "meet");
});

TEST(JobCopyThreads, that_one_process_does_not_get_are_an_error_in_all) {
  test::Job job("exposes_without_a_thread", 3, {{"MESHPOST_NODE", "one"}});
  auto const& ended = job.wait();
  expect_well(ended);
  for (u32 const process : {0, 2})
    EXPECT_THAT(ended[process].out,
                AllOf(HasSubstr("process 1 ("), HasSubstr("serve a JobMemory"),
                      HasSubstr("no thread could be started"), HasSubstr("memory is used up")));
}

}  // namespace
}  // namespace meshpost
