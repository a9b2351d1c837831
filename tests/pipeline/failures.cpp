#include <gtest/gtest.h>

#include <atomic>

#include "base/no_threads.hpp"
#include "lossy.hpp"
#include "pipelines.hpp"

namespace meshpost::test {
namespace {

PipelineOptions options_of_3_levels() {
  PipelineOptions options;
  options.levels = some_levels(3);
  options.items = 200;
  options.chunk = 10;
  options.item = Bytes{16};
  return options;
}

// A failing function must leave the pipeline, and all memory, fit for the next run.
void expect_runs_again(Pipeline& pipeline, ArrayCase& work, std::mt19937_64& random) {
  work.to.write(random_data(random, work.input.size()));
  pipeline.run();
  EXPECT_TRUE(work.right(1));
}

TEST(PipelineFailures, a_function_that_throws_ends_it_with_stage_and_chunk_named) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(options_of_3_levels(), random);
  work.add_compute(2);
  enum class Where { nowhere, segments, start, sync };
  std::atomic<Where> where{Where::nowhere};
  auto const fail = [&](Where here, u64 chunk) {
    if (where == here && chunk == 7) throw std::runtime_error("planted");
  };
  auto const segments = work.options.segments;
  work.options.segments = [&](ChunkMove const& move) {
    fail(Where::segments, move.stage == Stage::save ? move.chunk : 0);
    return segments(move);
  };
  auto& compute = work.options.compute[0];
  compute.start = [&, start = compute.start](ChunkWork const& chunk) {
    fail(Where::start, chunk.chunk);
    start(chunk);
  };
  compute.sync = [&](ChunkWork const& chunk) { fail(Where::sync, chunk.chunk); };
  Pipeline pipeline(work.options);
  for (auto const& [here, stage] : {std::pair{Where::segments, "SAVE^0 of chunk 7"},
                                    {Where::start, "COMP^2 of chunk 7"},
                                    {Where::sync, "COMP^2 of chunk 7"}}) {
    where = here;
    EXPECT_TRUE(says(error_of([&] { pipeline.run(); }), Kind::kernel_failed, {stage, "planted"}));
    where = Where::nowhere;
    expect_runs_again(pipeline, work, random);
  }
}

TEST(PipelineFailures, chunks_behind_the_failed_one_leave_the_users_memory_alone) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(options_of_3_levels(), random);
  work.add_compute(2);
  work.options.compute[0].sync = [](ChunkWork const& chunk) {
    if (chunk.chunk == 4) throw Error(Kind::bad_argument, "compute", "planted", "no");
  };
  auto const before = work.to.read(work.input.size());
  EXPECT_TRUE(says(error_of([&] { Pipeline(work.options).run(); }), Kind::bad_argument,
                   {"COMP^2 of chunk 4", "compute", "planted"}));
  auto const after = work.to.read(work.input.size());
  EXPECT_TRUE(std::equal(before.begin() + 4 * 160, before.end(), after.begin() + 4 * 160));
  EXPECT_EQ(work.from.read(work.input.size()), work.input);
}

TEST(PipelineFailures, segments_outside_their_buffer_are_refused) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(options_of_3_levels(), random);
  auto const segments = work.options.segments;
  auto const refuses = [&](auto&& change, std::initializer_list<std::string_view> pieces) {
    work.options.segments = [&](ChunkMove const& move) {
      auto pieces_of_chunk = segments(move);
      if (move.chunk == 3) change(move, pieces_of_chunk[0]);
      return pieces_of_chunk;
    };
    return says(error_of([&] { Pipeline(work.options).run(); }), Kind::bad_argument, pieces);
  };
  EXPECT_TRUE(refuses([](ChunkMove const&, Segment& one) { one.size.value += 1; },
                      {"LOAD^1 of chunk 3", "target of segment 0, 161 bytes at offset 0"}));
  EXPECT_TRUE(refuses(
      [](ChunkMove const& move, Segment& one) {
        if (move.stage == Stage::load) one.target = static_cast<char*>(one.target) - 1;
      },
      {"LOAD^1 of chunk 3", "at offset -1"}));
  EXPECT_TRUE(refuses(
      [](ChunkMove const& move, Segment& one) {
        if (move.stage == Stage::save) one.source = static_cast<char const*>(one.source) + 1;
      },
      {"SAVE^0 of chunk 3", "source of segment 0"}));
  EXPECT_TRUE(refuses([](ChunkMove const&, Segment& one) { one.source = nullptr; },
                      {"LOAD^1 of chunk 3", "null source"}));
}

TEST(PipelineFailures, options_that_make_no_pipeline_are_refused) {
  auto const refuses = [](auto&& change, std::string_view piece) {
    auto options = options_of_3_levels();
    options.segments = [](ChunkMove const&) { return std::vector<Segment>{}; };
    change(options);
    return says(error_of([&] { Pipeline{options}; }), Kind::bad_argument, {piece});
  };
  EXPECT_TRUE(refuses([](auto& o) { o.levels.clear(); }, "no levels"));
  EXPECT_TRUE(refuses([](auto& o) { o.levels[1].device = nullptr; }, "level 1 has no device"));
  EXPECT_TRUE(refuses([](auto& o) { o.chunk = 0; }, "chunks of 0 items"));
  EXPECT_TRUE(refuses([](auto& o) { o.item = Bytes{0}; }, "items of 0 bytes"));
  EXPECT_TRUE(refuses([](auto& o) { o.depth = 0; }, "0 chunks"));
  EXPECT_TRUE(refuses([](auto& o) { o.chunk = ~u64{0} / 2; }, "smaller chunks"));
  EXPECT_TRUE(refuses([](auto& o) { o.segments = nullptr; }, "no function"));
  EXPECT_TRUE(refuses([](auto& o) { o.compute.push_back({1}); }, "nothing to compute"));
  EXPECT_TRUE(refuses([](auto& o) { o.compute.push_back({1, [](auto&, auto&) {}, [](auto&) {}}); },
                      "two functions"));
  EXPECT_TRUE(
      refuses([](auto& o) { o.compute.push_back({3, {}, [](auto&) {}}); }, "level 3 computes"));
}

TEST(PipelineFailures, too_large_a_chunk_says_so) {
  auto options = options_of_3_levels();
  options.segments = [](ChunkMove const&) { return std::vector<Segment>{}; };
  options.chunk = u64{1} << 44;
  EXPECT_TRUE(says(error_of([&] { Pipeline{options}; }), Kind::out_of_memory, {"allocate"}));
}

TEST(PipelineFailures, a_device_lost_on_the_way_is_reported_and_nothing_hangs) {
  std::mt19937_64 random(std::random_device{}());
  for (int lives = 0; lives < 20; ++lives) {
    auto options = options_of_3_levels();
    auto const device = std::make_shared<LostDevice>(lives);
    options.levels[2] = {device, MemoryKind::device};
    ArrayCase work(options, random);
    work.options.compute.push_back({2, [](ChunkWork const& chunk, Stream& stream) {
                                      stream.copy(chunk.out, chunk.in, chunk.size);
                                    }});
    Pipeline pipeline(work.options);
    ASSERT_TRUE(says(error_of([&] { pipeline.run(); }), Kind::device_failed, {"fell off its bus"}));
    EXPECT_LE(*device->left, 0);
    *device->left = 1 << 30;  // it is available again
    pipeline.run();
    ASSERT_TRUE(work.right(0));
  }
}

TEST(PipelineFailures, a_leg_without_a_thread_ends_the_run_and_not_the_next) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(options_of_3_levels(), random);
  work.add_compute(2);
  Pipeline pipeline(work.options);
  {
    int given = 0;
    NoThreads const few([&](std::string_view purpose) {
      return purpose == "run a leg of a pipeline" && ++given == 3;
    });
    EXPECT_TRUE(says(error_of([&] { pipeline.run(); }), Kind::out_of_memory,
                     {"run a pipeline: start a thread to run a leg of a pipeline", "ulimit -u"}));
  }
  expect_runs_again(pipeline, work, random);
}

TEST(PipelineFailures, very_many_items_and_very_deep_buffers_are_an_error) {
  auto options = options_of_3_levels();
  options.segments = [](ChunkMove const&) -> std::vector<Segment> {
    throw std::runtime_error("planted");
  };
  options.items = ~u64{0}, options.chunk = 1;
  EXPECT_TRUE(says(error_of([&] { Pipeline{options}; }), Kind::bad_argument, {"2^64"}));
  options.items = u64{1} << 60;
  Pipeline many(options);
  EXPECT_TRUE(says(error_of([&] { many.run({.timed = true}); }), Kind::out_of_memory,
                   {"times of legs", "PipelineRun::timed"}));
  EXPECT_TRUE(says(error_of([&] { many.run(); }), Kind::kernel_failed, {"planted"}));
  options.depth = u32{1} << 30, options.item = Bytes{1};
  EXPECT_TRUE(says(error_of([&] { Pipeline{options}; }), Kind::bad_argument, {"1073741824"}));
}

}  // namespace
}  // namespace meshpost::test
