// A mistake in one process is an error in all processes that it concerns. A lost process is named.
#include <meshpost/copy/job_memory.hpp>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "copy/jobs/jobs.hpp"
#include "support/sanitized.hpp"

namespace meshpost {
namespace {

using test::expect_in_order;
using test::expect_well;
using test::print_error;
using test::require;
using test::Role;
using test::say;
using testing::AllOf;
using testing::HasSubstr;

// All processes ask for process 1's memory in wrong ways.
Role const bounds("bounds", [] {
  JobMemory job;
  std::vector<u8> mine(job.process() == 1 ? 1000 : 10), here(5000);
  auto field = job.expose(mine.data(), Bytes{mine.size()}, "field");
  copy(here.data(), field.at(1, 1000, Bytes{0}));
  copy(nullptr, field.at(1, 3, Bytes{0}));
  print_error([&] { field.at(1, 1000, Bytes{1}); });
  print_error([&] { field.at(1, 10, Bytes{~u64{0}}); });
  print_error([&] { field.at(1, ~u64{0}, Bytes{1}); });
  print_error([&] { field.at(9, 0, Bytes{1}); });
  print_error([&] { copy(nullptr, field.at(1, 3, Bytes{7})); });
  print_error([&] { copy(field.at(1, 3, Bytes{7}), nullptr); });
  print_error([&] {
    copy(here.data(), field.at(0, 0, Bytes{10}));
    copy(mine.data() + 2, field.at(job.process(), 0, Bytes{5}));
  });
  auto const range = field.at(1, 10, Bytes{20});
  RemotePut const puts[] = {{range, here.data()}, {field.at(1, 29, Bytes{5}), here.data()}};
  print_error([&] { put_batch(puts); });
  RemoteGet const gets[] = {{here.data() + 19, range}, {here.data(), range}};
  print_error([&] { get_batch(gets); });
  auto moved = std::move(field);
  print_error([&] { field.at(1, 0, Bytes{1}); });  // NOLINT: that is the point
  auto const meeting = job.expose(nullptr, Bytes{}, "meet");
});

Role const released("released", [] {
  JobMemory job;
  auto shared = std::make_optional(job.allocate(Bytes{5000}));
  std::vector<u8> plain(5000), here(5000);
  auto one = job.expose(plain.data(), Bytes{5000}, "plain");
  auto const other = job.expose(shared->data(), Bytes{5000}, "shared");
  auto const meet = [&] { auto const meeting = job.expose(nullptr, Bytes{}, "meet"); };
  RemoteBytes const ranges[] = {one.at(1, 0, Bytes{5000}), other.at(1, 7, Bytes{4})};
  meet();
  if (job.process() == 1) {
    one.release();
    shared.reset();  // frees the memory, so it is released
    print_error([&] { one.at(0, 0, Bytes{1}); });
  }
  meet();
  for (auto const& range : ranges) {
    print_error([&] { copy(here.data(), range); });
    print_error([&] { copy(range, here.data()); });
    print_error([&] { copy_async(here.data(), range).wait(); });
  }
  if (job.process() != 0)
    print_error([&] { get_batch(std::vector<RemoteGet>{{here.data(), ranges[0]}}).wait(); });
  copy(here.data(), other.at(0, 0, Bytes{5000}));  // which is still there
  RemoteGet const half[] = {{here.data(), other.at(0, 0, Bytes{2000})},
                            {here.data() + 3000, ranges[1]}};
  print_error([&] { get_batch(half).wait(); });  // one of its ranges was released
  auto const again =
      job.expose(plain.data(), Bytes{5000}, "again");  // in the slot that is free again
  print_error([&] { copy(here.data(), ranges[0]); });
  copy(here.data(), again.at(1, 0, Bytes{5000}));
  meet();
});

Role const unmapped("unmapped", [] {
  JobMemory job;
  auto const device = open_devices("cpu:1")[0];
  auto memory = std::make_optional(device->allocate(Bytes{1 << 20}, MemoryKind::device));
  auto* const gone = memory->data();
  std::vector<u8> here(1 << 20);
  memory.reset();
  if (job.process() == 1) print_error([&] { job.expose(gone, Bytes{1 << 20}, "gone"); });
  else print_error([&] { job.expose(here.data(), Bytes{1 << 20}, "gone"); });
  print_error([&] { job.expose(job.process() == 0 ? nullptr : here.data(), Bytes{1}, "null"); });
  auto const field = job.expose(here.data(), Bytes{1 << 20}, "field");  // still works
  copy(here.data(), field.at(1 - job.process(), 0, Bytes{100}));
  auto const meeting = job.expose(nullptr, Bytes{}, "meet");
});

Role const differing("differing", [] {
  JobMemory job;
  print_error([&] { job.expose(nullptr, Bytes{}, job.process() == 1 ? "left" : "right"); });
});

Role const too_late("too_late", [] {
  std::vector<u8> mine(10), here(10);
  std::optional<RemoteBytes> range;
  Exposed field;
  {
    JobMemory job;
    field = job.expose(mine.data(), Bytes{10}, "field");
    range = field.at(0, 0, Bytes{10});
  }
  print_error([&] { copy(here.data(), *range); });
  print_error([&] { copy_async(*range, here.data()).wait(); });
});

// Ends while its own copies are in progress: it waits for them.
Role const ends_early("ends_early", [] {
  std::vector<u8> mine(8'000'000, 1), here(8'000'000);
  std::optional<Copy> under_way;
  Exposed field;
  {
    JobMemory job;
    field = job.expose(mine.data(), Bytes{mine.size()}, "field");
    under_way.emplace(copy_async(here.data(), field.at(1, 0, Bytes{here.size()})));
  }
  require(under_way->done(), "it was waited for");
  under_way->wait();
  require(here == mine, "and has arrived");
});

std::vector<test::Variables> surroundings() {
  std::vector<test::Variables> all = {
      {{"MESHPOST_NODE", "one"}}, {{"MESHPOST_NODE", "one"}, {test::without_other_memory, "1"}}};
  if (test::network) all.emplace_back();  // each process on a node of its own, below
  return all;
}

std::vector<test::Ended> run(char const* role, u32 processes, test::Variables const& all) {
  test::Job job(role, processes, all, [&](u32 process) -> test::Variables {
    if (all.empty()) return {{"MESHPOST_NODE", std::to_string(process)}};
    return {};
  });
  auto ended = job.wait();
  expect_well(ended);
  return ended;
}

TEST(JobCopyMisuse, names_range_and_limit) {
  for (auto const& all : surroundings())
    for (auto const& one : run("bounds", 2, all))
      expect_in_order(one.out,
                      {"1 bytes at offset 1000 of 1000", "[bad argument]",
                       "18446744073709551615 bytes at offset 10 of 1000", "of 1000",
                       "there is no process 9", "7 bytes at a null pointer",
                       "7 bytes at a null pointer", "overlap", "copies 0 and 1 write the same",
                       "copies 0 and 1 write the same", "Exposed is empty", "[misuse]"});
}

TEST(JobCopyMisuse, of_released_memory_is_found_by_every_process) {
  for (auto const& all : surroundings()) {
    auto const ended = run("released", 3, all);
    EXPECT_THAT(ended[1].out, HasSubstr("this Exposed is empty"));
    for (auto const& one : ended)
      expect_in_order(one.out, {"process 1 (", "released its part", "[bad argument]",
                                "released its part", "released its part", "released its part",
                                "released its part", "released its part", "released its part"});
  }
}

TEST(JobCopyMisuse, of_memory_that_is_not_there_is_an_error_in_all_processes) {
  for (auto const& all : surroundings())
    for (auto const& one : run("unmapped", 2, all))
      expect_in_order(one.out,
                      {"expose 'gone'", "that was freed", "expose 'null'", "null pointer"});
}

TEST(JobCopyMisuse, calls_that_differ_are_named_by_all) {
  for (auto const& one : run("differing", 3, {{"MESHPOST_NODE", "one"}}))
    EXPECT_THAT(one.out, AllOf(HasSubstr("expose 'left'"), HasSubstr("expose 'right'"),
                               HasSubstr("[misuse]")));
}

TEST(JobCopyMisuse, copies_after_the_end_are_refused_and_those_before_are_waited_for) {
  for (auto const& all : surroundings()) {
    for (auto const& one : run("too_late", 2, all))
      expect_in_order(one.out, {"JobMemory of its memory is gone", "[misuse]", "[misuse]"});
    run("ends_early", 2, all);
  }
  expect_in_order(run("too_late", 1, {{"MESHPOST_NODE", "one"}})[0].out, {"is gone", "[misuse]"});
}

// -- processes that are lost

// Process 1 is killed while the others copy from and to it.
Role const copies_without_end("copies_without_end", [] {
  JobMemory job;
  auto const shared = job.allocate(Bytes{u64{16} << 20});
  std::vector<u8> plain(u64{16} << 20), here(u64{16} << 20);
  auto const one = job.expose(plain.data(), Bytes{plain.size()}, "plain");
  auto const other = job.expose(shared.data(), Bytes{plain.size()}, "shared");
  auto const& used = std::getenv("MESHPOST_TEST_SHARED") ? other : one;
  say("begins");
  if (job.process() == 1)
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  std::mt19937 random(job.process());
  print_error([&] {
    for (;;) {
      Bytes const size{random() % (here.size() - 1000)};  // above all bytes that are written
      auto under_way = copy_async(here.data(), used.at(1, 1000, size));
      if (random() % 2 == 0) under_way.wait();
      copy(used.at(1, 0, Bytes{random() % 1000}), plain.data());
      under_way.wait();
    }
  });
  print_error([&] { copy(here.data(), used.at(1, 0, Bytes{1})); });
  copy(here.data(), used.at(job.process(), 0, Bytes{plain.size()}));  // own memory is still there
  print_error([&] { job.expose(nullptr, Bytes{}, "more"); });
});

// The killed process copies from the others, which release their memory during its copy.
Role const is_copied_from("is_copied_from", [] {
  JobMemory job;
  std::vector<u8> plain(u64{64} << 20), here(u64{64} << 20);
  auto field = job.expose(plain.data(), Bytes{plain.size()}, "plain");
  say("begins");
  if (job.process() == 1)
    for (;;) copy(here.data(), field.at(0, 0, Bytes{here.size()}));
  print_error([&] {
    for (;;) {
      auto const more = job.expose(nullptr, Bytes{}, "more");
    }
  });
  field.release();  // does not wait for a process that has ended
  say("released");
});

void kill_one(char const* role, test::Variables const& all, std::chrono::microseconds after) {
  test::Job job(role, 3, all, [&](u32 process) -> test::Variables {
    if (!all.contains("MESHPOST_NODE")) return {{"MESHPOST_NODE", std::to_string(process)}};
    return {};
  });
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
  std::this_thread::sleep_for(after);
  job.kill(1);
  auto const ended = job.wait();
  for (u32 const process : {0, 2}) {
    EXPECT_TRUE(ended[process].well()) << ended[process].out;
    EXPECT_THAT(ended[process].out, AllOf(HasSubstr("[peer lost]"), HasSubstr("process 1 (")));
    EXPECT_LT(ended[process].seconds, 5 * test::timeout_factor);
  }
}

TEST(JobCopyLoss, of_the_owner_in_the_middle_of_a_copy_is_named) {
  std::mt19937 random(std::random_device{}());
  for (auto all : surroundings())
    for (bool const shared : {false, true}) {
      if (shared) all["MESHPOST_TEST_SHARED"] = "1";
      kill_one("copies_without_end", all, std::chrono::microseconds(random() % 60'000));
    }
}

TEST(JobCopyLoss, of_one_that_copies_does_not_hold_up_a_release) {
  for (auto const& all : surroundings())
    kill_one("is_copied_from", all, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace meshpost
