#include "meshpost/pipeline/pipeline.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "lossy.hpp"
#include "pipelines.hpp"

namespace meshpost::test {
namespace {

using namespace std::chrono_literals;

PipelineOptions array_options(u32 levels, u64 items, u64 chunk, u32 depth = 2) {
  PipelineOptions options;
  options.levels = some_levels(levels);
  options.items = items;
  options.chunk = chunk;
  options.item = Bytes{8};
  options.depth = depth;
  return options;
}

TEST(Pipeline, brings_every_item_through_and_back_in_every_shape) {
  auto const seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (u32 levels = 1; levels <= 4; ++levels)
    for (u32 depth = 1; depth <= 3; ++depth)
      for (u32 flags = 0; flags < 4; ++flags) {
        auto options = array_options(levels, random() % 3000, 1 + random() % 400, depth);
        options.reverse = (flags & 1) != 0;
        options.back = (flags & 2) != 0;
        SCOPED_TRACE("seed " + std::to_string(seed) + " levels " + std::to_string(levels) +
                     " depth " + std::to_string(depth) + " flags " + std::to_string(flags) +
                     " items " + std::to_string(options.items) + " chunk " +
                     std::to_string(options.chunk));
        ArrayCase work(options, random);
        u8 computed = 0;
        for (u32 level = 0; level < levels; ++level)
          if (levels == 1 || random() % 2 == 0) work.add_compute(level), ++computed;
        Pipeline pipeline(work.options);
        auto const result = pipeline.run();
        ASSERT_TRUE(work.right(computed));
        u64 const moves = pipeline.schedule().legs.size() - computed;
        EXPECT_EQ(result.bytes, options.items * 8 * moves);
      }
}

TEST(Pipeline, computes_on_a_stream) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(array_options(3, 5000, 123, 2), random);
  work.options.compute.push_back({2, [](ChunkWork const& chunk, Stream& stream) {
                                    stream.copy(chunk.out, chunk.in, chunk.size);
                                    if (chunk.chunk == 1) stream.fill(chunk.out, 7, Bytes{8});
                                  }});
  Pipeline(work.options).run();
  for (u64 i = 0; i < 8; ++i) work.input[123 * 8 + i] = 7;
  EXPECT_TRUE(work.right(0));
}

TEST(Pipeline, puts_work_on_streams_ahead_of_time_in_an_order_that_is_right) {
  auto const seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int repeat = 0; repeat < 60; ++repeat) {
    auto options =
        array_options(3, random() % 2000, 1 + random() % 50, static_cast<u32>(1 + random() % 3));
    auto const device = std::make_shared<LostDevice>(1 << 30);
    options.levels[1 + random() % 2] = {device, MemoryKind::device};
    options.levels[0].memory = random() % 2 == 0 ? MemoryKind::pinned : MemoryKind::pageable;
    options.reverse = random() % 4 == 0;
    SCOPED_TRACE("seed " + std::to_string(seed) + " repeat " + std::to_string(repeat));
    ArrayCase work(options, random);
    work.add_compute(1);
    work.options.compute.push_back({2, [&work](ChunkWork const& chunk, Stream& stream) {
                                      u64 const offset = chunk.first * 8;
                                      stream.copy(chunk.out ? chunk.out : work.to.data() + offset,
                                                  chunk.in ? chunk.in : work.from.data() + offset,
                                                  chunk.size);
                                    }});
    Pipeline pipeline(work.options);
    pipeline.run({.timed = repeat % 2 == 0});
    ASSERT_TRUE(work.right(1));
  }
}

TEST(Pipeline, takes_the_pieces_of_a_chunk_from_where_the_function_says) {
  // A matrix stored by rows: a chunk is some columns, so it has a piece of each row.
  constexpr u64 rows = 13, columns = 300, chunk = 32;
  std::mt19937_64 random(std::random_device{}());
  auto const input = random_data(random, rows * columns);
  auto output = random_data(random, rows * columns);
  auto options = array_options(3, columns, chunk);
  options.item = Bytes{rows};
  u64 between = 0;
  options.segments_between_buffers = true;
  options.segments = [&](ChunkMove const& move) {
    std::vector<Segment> pieces;
    if (move.source && move.target) ++between;
    for (u64 row = 0; row < rows; ++row) {
      u64 const matrix = row * columns + move.first, packed = row * move.count;
      auto const* const source =
          move.source ? static_cast<u8 const*>(move.source) + packed : input.data() + matrix;
      auto* const target =
          move.target ? static_cast<u8*>(move.target) + packed : output.data() + matrix;
      pieces.push_back({target, source, Bytes{move.count}});
    }
    return pieces;
  };
  Pipeline(options).run();
  EXPECT_EQ(output, input);
  EXPECT_EQ(between, 2 * ((columns + chunk - 1) / chunk));
}

TEST(Pipeline, passes_no_items_without_calling_anything) {
  auto options = array_options(3, 0, 10);
  options.segments = [](ChunkMove const&) -> std::vector<Segment> { throw std::logic_error("no"); };
  EXPECT_EQ(Pipeline(options).run().bytes, 0);
}

TEST(Pipeline, can_run_again_and_says_how_much_memory_it_uses) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(array_options(3, 1000, 64, 3), random);
  work.add_compute(2);
  Pipeline pipeline(work.options);
  EXPECT_EQ(pipeline.buffer_bytes(), 64 * 8 * 3 * 4);
  for (int i = 0; i < 20; ++i) {
    work.to.write(random_data(random, 8000));
    pipeline.run();
    ASSERT_TRUE(work.right(1));
  }
}

TEST(Pipeline, stages_overlap) {
  std::mt19937_64 random(std::random_device{}());
  auto options = array_options(3, 40, 1);
  ArrayCase work(options, random);
  for (u32 level = 0; level < 3; ++level) {
    work.add_compute(level);
    work.options.compute.back().sync = [](ChunkWork const&) { std::this_thread::sleep_for(3ms); };
  }
  Pipeline pipeline(work.options);
  auto const together = pipeline.run().seconds;
  auto const alone = pipeline.run({.one_at_a_time = true}).seconds;
  EXPECT_TRUE(work.right(3));
  EXPECT_GE(alone, 3 * 40 * 0.003);
  EXPECT_GE(together, 40 * 0.003);
  EXPECT_LT(together, 0.6 * alone);
}

TEST(Pipeline, notes_the_times_of_each_leg_in_an_order_that_the_schedule_allows) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(array_options(3, 100, 7, 2), random);
  work.add_compute(2);
  Pipeline pipeline(work.options);
  auto const& schedule = pipeline.schedule();
  auto const result = pipeline.run({.timed = true});
  ASSERT_EQ(result.legs.size(), 15 * 5);
  for (u64 i = 0; i < schedule.size(); i += 2) {
    auto const times = result.legs[i / 2];
    ASSERT_LE(times.begin, times.end);
    for (u64 const before : schedule.step(i).after)
      ASSERT_GE(times.begin, result.legs[before / 2].end) << "step " << i << " after " << before;
  }
  auto const trace = nlohmann::json::parse(to_perfetto(schedule, result, "test"));
  EXPECT_EQ(std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                          [](auto const& event) { return event["ph"] == "X"; }),
            75);
  EXPECT_TRUE(says(error_of([&] { to_perfetto(schedule, pipeline.run(), "test"); }),
                   Kind::bad_argument, {"timed"}));
}

// Invented times, for pictures only.
PipelineResult result_of(Schedule const& schedule) {
  PipelineResult result;
  result.legs.assign(schedule.shape.chunks * schedule.legs.size(), {0.25, 1.5});
  return result;
}

TEST(Pipeline, is_drawn_whatever_it_is_called) {
  auto const schedule = make_schedule({2, 2, 2, {}});
  auto const trace =
      nlohmann::json::parse(to_perfetto(schedule, result_of(schedule), "a\"\\\n\xff\xc3"));
  EXPECT_EQ(trace["otherData"]["kernel"], "a\"\\\n\ufffd\ufffd");
  EXPECT_EQ(trace["traceEvents"].size(), 3 + 4u);
  EXPECT_DOUBLE_EQ(trace["traceEvents"][3]["ts"], 0.25e6);
  EXPECT_DOUBLE_EQ(trace["traceEvents"][3]["dur"], 1.25e6);
}

TEST(Pipeline, is_drawn_in_little_memory) {
  auto const schedule = make_schedule({2, 50000, 2, {}});
  auto const result = result_of(schedule);
  auto const most_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  auto const before = most_kib();
  EXPECT_GT(to_perfetto(schedule, result, "large").size(), 100000 * 50u);
  EXPECT_LT(most_kib() - before, 120 << 10);  // a tree of 100000 events takes 250 MiB
}

TEST(Pipeline, one_at_a_time_overlaps_nothing) {
  std::mt19937_64 random(std::random_device{}());
  ArrayCase work(array_options(3, 50, 7, 2), random);
  work.add_compute(2);
  auto const result = Pipeline(work.options).run({.timed = true, .one_at_a_time = true});
  for (u64 i = 1; i < result.legs.size(); ++i)
    ASSERT_GE(result.legs[i].begin, result.legs[i - 1].end);
  EXPECT_TRUE(work.right(1));
}

}  // namespace
}  // namespace meshpost::test
