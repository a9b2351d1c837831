// Resources that runs on CPU devices reuse: many runs with one launch resources.
#include <malloc.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/host_hooks.hpp"
#include "meshpost/device/backend.hpp"
#include "support/errors.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

// Findings of the ranks of a run, and a setting of the run.
struct Board {
  std::atomic<u32> threads{0};  // that have run
  std::atomic<u32> wrong{0};
  u64 scratch = 0;
  bool throws = false;  // the last thread of rank 0, while the others wait for it
};

thread_local u32 runs_of_this_thread = 0;

// Scratch is clear at first, and threads of a rank see in it what the others wrote before they met.
void meet_in_scratch(void const*, void const* state, Block block, u32 rank, void* scratch) {
  auto& board = *static_cast<Board*>(const_cast<void*>(state));
  auto* const bytes = static_cast<unsigned char*>(scratch);
  u32 const thread = block.thread(), threads = block.threads();
  if (board.throws && rank == 0 && thread == threads - 1) throw std::runtime_error("planted");
  for (u64 i = thread; i < board.scratch; i += threads) board.wrong += bytes[i] != 0;
  block.sync();
  for (u64 i = thread; i < board.scratch; i += threads)
    bytes[i] = static_cast<unsigned char>(i + 1);
  block.sync();
  for (u64 i = 0; i < board.scratch; ++i)
    board.wrong += bytes[i] != static_cast<unsigned char>(i + 1);
  board.wrong += !block.any(thread == threads / 2);
  ++board.threads;
}

class LaunchResourcesCpuOnly : public testing::Test {
 protected:
  struct Run {
    u32 ranks = 2, threads = 1, workers = 2;
    u64 scratch = 0;
    bool thread_a_rank = false, throws = false;
  };

  void run(Run const& wanted, CpuEntry entry = meet_in_scratch) {
    std::vector<RankReport> reports(wanted.ranks);
    for (auto& report : reports) report.state = static_cast<u32>(RankState::running);
    Control control{};
    board.threads = 0;
    board.scratch = wanted.scratch;
    board.throws = wanted.throws;
    LaunchSpec spec;
    spec.resources = resources.get();
    spec.image.name = "launch resources test";
    spec.image.cpu = entry;
    spec.threads = {wanted.threads, 1, 1};
    spec.workers = wanted.workers;
    spec.scratch = Bytes{wanted.scratch};
    spec.thread_a_rank = wanted.thread_a_rank;
    spec.grids = {
        {backend("cpu").open(0), wanted.ranks, 0, &board, reports.data(), &control, nullptr}};
    auto const launch = backend("cpu").launch(spec);
    while (!launch->finished()) launch->doze(std::chrono::milliseconds(1));
    EXPECT_FALSE(launch->deadlocked());
    for (auto const& report : reports) ended += report.state == static_cast<u32>(RankState::ended);
    EXPECT_EQ(control.poison, wanted.throws ? 1u : 0u);
  }
  void expect_well(Run const& wanted) {
    ended = 0;
    run(wanted);
    EXPECT_EQ(board.threads, wanted.ranks * wanted.threads);
    EXPECT_EQ(ended, wanted.ranks);
    EXPECT_EQ(board.wrong, 0u);
  }

  Board board;
  u32 ended = 0;
  std::unique_ptr<LaunchResources> resources = backend("cpu").launch_resources();
};

TEST_F(LaunchResourcesCpuOnly, serves_runs_of_all_sizes_one_after_the_other) {
  u32 constexpr rank_counts[] = {3, 1, 8, 8, 2}, thread_counts[] = {1, 4, 4, 16, 1, 1},
                worker_counts[] = {2, 2, 1, 4};
  u64 constexpr scratch_sizes[] = {0, 64, 64, 5000, 16, 0, 64};
  for (u32 i = 0; i < (test::sanitized ? 100 : 1000); ++i)
    expect_well({rank_counts[i % 5], thread_counts[i % 6], worker_counts[i % 4],
                 scratch_sizes[i % 7], i % 11 == 0});
}

TEST_F(LaunchResourcesCpuOnly, serves_the_next_run_after_one_that_failed) {
  for (u32 i = 0; i < 20; ++i) {
    run({3, 4, 2, 64, false, true});
    EXPECT_LT(board.threads, 12u);
    expect_well({3, i % 2 == 0 ? 4u : 1u, 2, 64});
  }
}

TEST_F(LaunchResourcesCpuOnly, serves_the_next_run_after_threads_could_not_be_started) {
  for (bool const thread_a_rank : {false, true})
    for (u32 const refused : {1u, 2u, 4u}) {
      u32 started = 0;
      hooks::install_host_hook([&](std::string_view place) {
        if (place == "start a worker's thread" && ++started == refused)
          throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      });
      auto const error = error_of([&] { run({4, 1, 4, 0, thread_a_rank}); });
      hooks::install_host_hook(nullptr);
      EXPECT_TRUE(says(error, Kind::out_of_memory,
                       {"only " + std::to_string(refused - 1) + " of 4 worker threads",
                        "fewer workers or ranks"}));
      expect_well({4, 1, 4, 0, thread_a_rank});
      expect_well({4, 2, 4, 32});
    }
}

void count_runs(void const*, void const* state, Block, u32, void*) {
  static_cast<Board*>(const_cast<void*>(state))->threads += runs_of_this_thread++ == 0;
}

TEST_F(LaunchResourcesCpuOnly, keeps_its_threads_unless_each_rank_has_one_of_its_own) {
  u32 ranks_on_new_threads[5];
  for (u32 i = 0; i < 5; ++i) {
    run({4, 1, 4, 0, i == 2 || i == 3}, count_runs);
    ranks_on_new_threads[i] = board.threads;
  }
  EXPECT_EQ(ranks_on_new_threads[0], 4u);
  EXPECT_EQ(ranks_on_new_threads[1], 0u);
  EXPECT_EQ(ranks_on_new_threads[2], 4u);
  EXPECT_EQ(ranks_on_new_threads[3], 4u);
  EXPECT_EQ(ranks_on_new_threads[4], 4u);  // the kept ones had to go
}

struct SaysRunsBefore {
  Window<u32> runs;
  // A worker has one rank: for TSan, ranks of one worker are unordered threads.
  void operator()(Rank& self) const { runs.local(self)[0] = runs_of_this_thread++; }
};

TEST_F(LaunchResourcesCpuOnly, of_a_world_serves_all_its_runs) {
  auto options = test::options(2, "cpu:2");
  options.workers = 4;
  World world(options);
  auto const runs = world.window<u32>(1, Tags{0});
  for (u32 i = 0; i < 3; ++i) world.run(SaysRunsBefore{runs});
  for (u32 r = 0; r < world.size(); ++r) EXPECT_GE(runs.read(RankId{r})[0], 2u);
}

u64 processor_time_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<u64>(time.tv_sec) * 1'000'000'000 + static_cast<u64>(time.tv_nsec);
}

TEST_F(LaunchResourcesCpuOnly, takes_no_processor_time_between_runs) {
  expect_well({4, 1, 4});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  u64 const before = processor_time_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(processor_time_ns() - before, 50'000'000u);  // four polling workers would take 300 ms
  expect_well({4, 1, 4});
}

std::size_t threads_of_this_process() {
  std::filesystem::directory_iterator const all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_F(LaunchResourcesCpuOnly, does_not_grow_from_run_to_run) {
  auto const some_runs = [&](u32 count) {
    for (u32 i = 0; i < count; ++i) expect_well({4, i % 2 == 0 ? 4u : 1u, 2, 256 * (i % 3)});
  };
  some_runs(20);
  auto const bytes = mallinfo2().uordblks;
  auto const threads = threads_of_this_process();
  some_runs(test::sanitized ? 100 : 2000);
  EXPECT_EQ(threads_of_this_process(), threads);
  EXPECT_LT(mallinfo2().uordblks, bytes + 64 * 1024);
}

}  // namespace
}  // namespace meshpost
