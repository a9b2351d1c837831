// Pipelines over processes give the same results as in one process. A failure in one process ends
// all.
#include <meshpost/pipeline/pipeline.hpp>

#include <chrono>
#include <random>
#include <thread>

#include "base/no_threads.hpp"
#include "pipeline/pipelines.hpp"
#include "support/job.hpp"
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

// Data that depend on all operations on them, and on their order.
u8 changed(u8 byte, u32 level) { return static_cast<u8>(byte * 3 + level + 1); }

struct Case {
  PipelineOptions options;
  std::vector<u8> from, to;
  u32 chunk_that_fails = ~u32{0};
  std::chrono::microseconds pause{0};

  void complete() {
    options.segments = [this](ChunkMove const& move) {
      u64 const offset = move.first * options.item;
      return std::vector<Segment>{move.whole(to.data() + offset, from.data() + offset)};
    };
    for (auto& compute : options.compute)
      compute.start = [this, level = compute.level](ChunkWork const& work) {
        if (work.chunk == chunk_that_fails)
          throw Error(Kind::kernel_failed, "compute", "I will not", "ask somebody else");
        std::this_thread::sleep_for(pause);
        u64 const offset = work.first * options.item;
        std::vector<u8> bytes(work.size);
        copy(bytes.data(), work.in ? work.in : from.data() + offset, work.size);
        for (auto& byte : bytes) byte = changed(byte, level);
        copy(work.out ? work.out : to.data() + offset, bytes.data(), work.size);
      };
  }
};

// Equal in all processes. `random` chooses the processes of levels, except where data stay in the
// home process.
void random_case(Case& work, std::mt19937_64& random, u32 processes) {
  auto& options = work.options;
  auto const devices = test::test_devices();
  u32 const levels = 2 + static_cast<u32>(random() % 4);
  options.reverse = random() % 2 == 0;
  options.back = random() % 3 != 0;
  options.items = random() % 3000;
  options.chunk = 1 + random() % 300;
  options.item = Bytes{1 + random() % 9};
  options.depth = static_cast<u32>(1 + random() % 3);
  for (u32 i = 0; i < levels; ++i) {
    auto const memory = static_cast<MemoryKind>(random() % 3);
    options.levels.push_back(
        {devices[i % devices.size()], memory, static_cast<u32>(random() % processes)});
  }
  // The user has memory at both ends; in one process for the comparison.
  if (!options.back) options.levels.back().process = options.levels.front().process;
  auto const& home = options.reverse ? options.levels.back() : options.levels.front();
  for (u32 i = 0; i < levels; ++i)
    if (random() % 2 == 0 &&
        (options.back || options.levels[i].process == home.process || i % 2 == 0))
      options.compute.push_back({i, {}, {}, {}});
  work.from = test::random_data(random, options.items * options.item);
  work.to.resize(work.from.size());
  work.complete();
}

Role const random_pipelines("random_pipelines", [] {
  JobMemory job;
  std::mt19937_64 random(4711);
  for (int round = 0; round < 25; ++round) {
    Case work;
    random_case(work, random, job.processes());
    auto& options = work.options;
    u32 const home = options.reverse ? options.levels.back().process : options.levels[0].process;
    // The expected result, from one process.
    auto expected = work.from;
    std::vector<u32> order;
    for (auto const& compute : options.compute) order.push_back(compute.level);
    if (options.reverse) std::reverse(order.begin(), order.end());
    for (auto& byte : expected)
      for (u32 const level : order) byte = changed(byte, level);
    options.job = &job;
    for (auto& level : options.levels)
      if (level.process != job.process()) level.device = nullptr;
    Pipeline pipeline(options);
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::fill(work.to.begin(), work.to.end(), u8{77});
      auto const result = pipeline.run({.timed = repeat == 1, .one_at_a_time = repeat == 2});
      if (job.process() == home)
        require(work.to == expected,
                "round " + std::to_string(round) + " repeat " + std::to_string(repeat));
      else
        require(std::ranges::all_of(work.to, [](u8 byte) { return byte == 77; }), "others' memory");
      require(result.seconds > 0, "it takes time");
    }
  }
});

TEST(JobPipelines, bring_what_they_bring_in_one_process) {
  for (u32 const processes : {1, 2, 3}) {
    SCOPED_TRACE(processes);
    test::Job job("random_pipelines", processes);
    expect_well(job.wait());
  }
}

Case three_levels(JobMemory& job, bool reverse) {
  Case work;
  auto const device = test::test_devices()[0];
  work.options.levels = {{device, MemoryKind::pageable, reverse ? 1u : 0u},
                         {device, MemoryKind::pinned, job.processes() - 1},
                         {device, MemoryKind::device, reverse ? 0u : 1u}};
  work.options.compute = {{1, {}, {}, {}}, {2, {}, {}, {}}};
  work.options.items = 1000, work.options.chunk = 10, work.options.item = Bytes{16};
  work.options.reverse = reverse;
  work.options.job = &job;
  work.from.resize(16'000, 1);
  work.to.resize(16'000);
  return work;
}

void failing(bool reverse) {
  JobMemory job;
  auto work = three_levels(job, reverse);
  u32 const failing_level = 1;
  if (work.options.levels[failing_level].process == job.process()) work.chunk_that_fails = 37;
  work.complete();
  if (work.options.levels[2].process == job.process())
    work.options.compute[1].start = [](ChunkWork const&) {};  // where nothing fails
  Pipeline pipeline(work.options);
  print_error([&] { pipeline.run(); });
  work.chunk_that_fails = ~u32{0};
  pipeline.run();  // can be run again
  std::printf("went on\n");
}
Role const fails_forward("fails_forward", [] { failing(false); });
Role const fails_in_reverse("fails_in_reverse", [] { failing(true); });

TEST(JobPipelines, that_fail_in_one_process_end_in_all_with_its_error) {
  for (u32 const processes : {2, 3})
    for (auto const* const role : {"fails_forward", "fails_in_reverse"}) {
      SCOPED_TRACE(testing::Message() << role << " in " << processes);
      test::Job job(role, processes);
      auto const& all = job.wait();
      expect_well(all);
      for (u32 process = 0; process < processes; ++process)
        EXPECT_THAT(all[process].out,
                    AllOf(HasSubstr("COMP^1 of chunk 37"), HasSubstr("I will not"),
                          HasSubstr("[kernel failed]"), HasSubstr("went on"),
                          HasSubstr(process + 1 == processes
                                        ? "compute"
                                        : "in process " + std::to_string(processes - 1) + " (")));
    }
}

Role const without_threads("without_threads", [] {
  JobMemory job;
  auto work = three_levels(job, false);
  work.complete();
  Pipeline pipeline(work.options);
  auto const run = [&](std::string const& wanted, PipelineRun how) {
    test::NoThreads const none([&, odd = job.process() == 1](std::string_view purpose) {
      return odd && purpose == wanted;
    });
    print_error([&] { pipeline.run(how); });
  };
  for (bool const one_at_a_time : {false, true})
    run("hear of a pipeline's other processes", {.one_at_a_time = one_at_a_time});
  run("run a leg of a pipeline", {});
  pipeline.run();
  std::printf("went on\n");
});

TEST(JobPipelines, that_lack_a_thread_in_one_process_end_in_all) {
  test::Job job("without_threads", 3);
  auto const& all = job.wait();
  expect_well(all);
  for (auto const& one : all)
    expect_in_order(one.out, {"start a thread to hear of", "start a thread to hear of",
                              "start a thread to run a leg", "went on"});
}

Role const misfit("misfit", [] {
  JobMemory job;
  bool const odd = job.process() == 1;
  auto const make = [&](auto const& change) {
    auto work = three_levels(job, false);
    work.complete();
    change(work.options);
    print_error([&] { Pipeline const pipeline(work.options); });
  };
  make([&](PipelineOptions& options) { options.depth = odd ? 2 : 3; });
  make([&](PipelineOptions& options) { options.levels[1].process = odd ? 0 : 1; });
  make([&](PipelineOptions& options) { options.levels[2].process = 5; });
  make([&](PipelineOptions& options) {
    if (odd) options.levels[2].device = nullptr;
  });
  make([&](PipelineOptions& options) {
    if (odd) options.compute[0].start = nullptr;
  });
  make([&](PipelineOptions& options) {
    if (!odd) options.segments = nullptr;
  });
  make([&](PipelineOptions& options) {
    options.levels.pop_back();
    options.compute.pop_back();
    options.back = false;
    options.compute.clear();
  });
  auto work = three_levels(job, false);
  work.complete();
  if (!odd) {
    auto const segments = work.options.segments;
    work.options.segments = [segments](ChunkMove const& move) {
      auto pieces = segments(move);
      if (move.chunk == 3 && move.target) pieces[0].target = static_cast<char*>(move.target) + 1;
      return pieces;
    };
  }
  Pipeline pipeline(work.options);
  print_error([&] { pipeline.run(); });
  print_error([&] { pipeline.run({.one_at_a_time = odd}); });
});

TEST(JobPipelines, that_differ_or_cannot_be_are_refused_in_all_processes) {
  test::Job job("misfit", 2);
  auto const& all = job.wait();
  expect_well(all);
  for (auto const& one : all)
    expect_in_order(
        one.out,
        {"depth ", "[misuse]", "in processes 0 ", "[misuse]",
         "level 2 is of process 5; there are 2", "level 2 has no device",
         "level 1 has nothing to compute", "no function gives the segments",
         "LOAD^1 goes from your memory in process 0 to your memory in process 1",
         "LOAD^1 of chunk 3: segments", "160 bytes at offset 1", "one leg at a time", "[misuse]"});
}

Role const endless("endless", [] {
  JobMemory job;
  auto work = three_levels(job, false);
  work.complete();
  work.pause = std::chrono::microseconds(300);
  Pipeline pipeline(work.options);
  say("begins");
  print_error([&] {
    for (;;) pipeline.run();
  });
});

TEST(JobPipelines, that_lose_a_process_name_it) {
  std::mt19937 random(std::random_device{}());
  for (u32 const victim : {0, 1, 2}) {
    SCOPED_TRACE(victim);
    test::Job job("endless", 3);
    for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 50'000));
    job.kill(victim);
    auto const& all = job.wait();
    for (u32 process = 0; process < 3; ++process) {
      if (process == victim) continue;
      EXPECT_TRUE(all[process].well()) << all[process].out;
      EXPECT_THAT(all[process].out, AllOf(HasSubstr("[peer lost]"),
                                          HasSubstr("process " + std::to_string(victim) + " (")));
      EXPECT_LT(all[process].seconds, 5 * test::timeout_factor);
    }
  }
}

// As libfabric's shm may do after a process was killed (src/copy/job/hang.cpp).
TEST(JobPipelines, that_lose_a_process_end_though_the_network_of_another_hangs) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("endless", 3, {{"TSAN_OPTIONS", "report_thread_leaks=0"}},  // of the one that does
                [](u32 process) -> test::Variables {
                  return {{"MESHPOST_NODE", std::to_string(process)},
                          {"MESHPOST_NET", process == 0 ? "faulty:hang:7:ofi:tcp" : "ofi:tcp"}};
                });
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
  job.wait_for(0, "hangs, as it was told to");
  job.kill(1);
  auto const& all = job.wait();
  for (u32 const process : {0, 2}) {
    EXPECT_TRUE(all[process].well()) << all[process].out;
    EXPECT_THAT(all[process].out, AllOf(HasSubstr("[peer lost]"), HasSubstr("process 1 (")));
    EXPECT_LT(std::chrono::duration<double>(all[process].seconds), test::before_it_comes_back);
  }
}

}  // namespace
}  // namespace meshpost
