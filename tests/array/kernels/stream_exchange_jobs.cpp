// Exchanges on streams of several processes, and in CUDA graphs.
#include "array/kernels/exchange.hpp"
#include "array/kernels/stream_exchange.hpp"
#include "support/job.hpp"

namespace meshpost::stream_exchange_job_tests {
namespace {

using namespace std::chrono_literals;
using test::exchange_on;
using test::part_of;
using test::PartArray;
using test::RandomNeeds;

test::Role const exchanges("random_stream_exchanges", [] {
  World world(test::world_options());
  auto streams = test::streams_of(world);
  JobMemory job;
  for (u64 seed = 1; seed <= (test::sanitized ? 3 : 6); ++seed) {
    RandomNeeds const random(seed, world.device_count());
    u32 const first = world.first_rank() / world.ranks_per_device();
    std::span const needs(random.needs);
    auto const plan =
        Plan::from_indices(random.distribution, needs.subspan(first, world.devices().size()), &job);
    auto const exchange = exchange_on<double>(world, plan, streams);
    auto wrong = test::wrong_stream_steps<double>(plan, exchange, world, streams, seed);
    wrong += test::wrong_stream_reverse<double>(plan, world, streams, seed, StreamCombine::sum);
    test::require(wrong.empty(), "seed " + std::to_string(seed) + ": " + wrong);
    free_exchange(world, exchange);
  }
});

test::Role const different("different_stream_exchanges", [] {
  World world(test::world_options());
  auto const streams = test::streams_of(world);
  JobMemory job;
  std::vector<std::vector<u64>> const needs(1);
  auto const distribution = Distribution::block(9, world.device_count());
  auto const plan = Plan::from_indices(distribution, needs, &job);
  auto const own = world.process() == 0 ? plan : plan.reverse();
  test::print_error([&] { exchange_on<int>(world, own, streams); });
  std::vector<StreamEndpoint> const none;
  test::print_error([&] { exchange_on<int>(world, plan, world.process() == 0 ? none : streams); });
  test::print_error([&] {
    if (world.process() == 0) exchange_on<int>(world, plan, streams);
    else exchange_on<float>(world, plan, streams);
  });
});

// The stream of process 0 has failed, and only process 0 knows.
test::Role const failed("fails_before_a_stream_exchange", [] {
  World world(test::world_options());
  auto streams = test::streams_of(world);
  JobMemory job;
  std::vector<std::vector<u64>> const needs{{0, 1}};
  auto const plan = Plan::from_indices(Distribution::block(2, 2), needs, &job);
  auto const before = exchange_on<u64>(world, plan, streams);
  MessageWindow const box(world, {.slots = 4, .slot_bytes = 256});
  PartArray<u64> const array(*world.devices()[0], part_of<u64>(plan, world.process(), 0, true, 0));
  if (world.process() == 1) {
    streams[0].send(box, StreamId{0, 0}, array.span(), Tag{0});
    streams[0].synchronize();
  } else {
    streams[0].receive(box, StreamId{1, 0}, array.span().first(1), Tag{0});
    test::print_error([&] {
      for (auto const end = std::chrono::steady_clock::now() + 10s;
           std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(1ms))
        before.explain(0);
    });
  }
  test::print_error([&] { exchange_on<u64>(world, plan, streams); });
  if (world.process() == 0) test::print_error([&] { streams[0].synchronize(); });
  free_exchange(world, before);
  auto const after = exchange_on<u64>(world, plan, streams);
  for (u32 step = 0; step < 3; ++step) after.exchange({array.span()});
  test::require(array.read() == part_of<u64>(plan, world.process(), 0, true, true), "the halo");
});

// Process 1 ends while process 0 waits for it.
test::Role const lost("loses_a_stream_exchange", [] {
  World world(test::world_options());
  auto streams = test::streams_of(world);
  JobMemory job;
  std::vector<std::vector<u64>> const needs{{0, 1}};
  auto const plan = Plan::from_indices(Distribution::block(2, 2), needs, &job);
  auto const exchange = exchange_on<u64>(world, plan, streams);
  PartArray<u64> const array(*world.devices()[0], std::vector<u64>(2));
  if (world.process() == 1) std::_Exit(3);
  exchange.start(0, array.span());
  exchange.finish(0, array.span());
  test::print_error([&] { streams[0].synchronize(); });
  test::print_error([&] { exchange.start(0, array.span()); });
  test::print_error([&] { streams[0].synchronize(); });
});

TEST(JobStreamExchange, of_different_plans_or_without_streams_is_refused) {
  test::Job job("different_stream_exchanges", 2, {{"MESHPOST_DEVICES", "cpu:1"}});
  auto const& all = job.wait();
  test::expect_well(all);
  for (auto const& one : all) {
    EXPECT_THAT(one.out, testing::HasSubstr("by plan"));
    EXPECT_THAT(one.out, testing::HasSubstr("0 streams were given"));
    EXPECT_THAT(one.out, testing::HasSubstr("elements of 4 bytes, aligned to 4, int32"));
    EXPECT_THAT(one.out, testing::HasSubstr("elements of 4 bytes, aligned to 4, float32"));
  }
}

TEST(JobStreamExchange, with_a_stream_that_failed_is_refused_in_all_processes) {
  test::Job job("fails_before_a_stream_exchange", 2, {{"MESHPOST_DEVICES", "cpu:1"}});
  auto const& all = job.wait(30s);
  test::expect_well(all);
  EXPECT_THAT(all[0].out, testing::HasSubstr("a message of 16 bytes"));
  EXPECT_THAT(all[1].out, testing::AllOf(testing::HasSubstr("process 0"),
                                         testing::HasSubstr("a message of 16 bytes")));
}

TEST(JobStreamExchange, brings_each_halo_its_step) {
  test::Job job("random_stream_exchanges", 2, {{"MESHPOST_RANKS", "1"}});
  test::expect_well(job.wait());
}

TEST(JobStreamExchange, goes_to_other_nodes) {
  test::Job job("random_stream_exchanges", 2, {{"MESHPOST_RANKS", "1"}}, [](u32 process) {
    return test::Variables{{"MESHPOST_NODE", std::to_string(process)}};
  });
  test::expect_well(job.wait());
}

TEST(JobStreamExchange, ends_with_a_process) {
  test::Job job("loses_a_stream_exchange", 2, {{"MESHPOST_DEVICES", "cpu:1"}});
  auto const& all = job.wait(30s);
  EXPECT_THAT(all[0].out, testing::HasSubstr("[peer lost]"));
}

#if defined(__CUDACC__)

// Any number of steps in a graph, also an odd one, and calls between replays.
TEST(StreamExchangeGraphs, are_right_in_each_replay) {
  if (!test::on_gpus()) GTEST_SKIP() << "needs GPUs";
  World world(test::options(1));
  auto streams = test::streams_of(world);
  u32 const parts = world.device_count();
  std::vector<std::vector<u64>> needs(parts);
  for (u32 part = 0; part < parts; ++part) needs[part] = {u64{4} * ((part + 1) % parts)};
  auto const plan = Plan::from_indices(Distribution::block(u64{4} * parts, parts), needs);
  auto const exchange = exchange_on<u64>(world, plan, streams);
  std::vector<PartArray<u64>> arrays;
  std::vector<cudaGraphExec_t> graphs(parts);
  auto const check = [](cudaError_t status) { ASSERT_EQ(status, cudaSuccess); };
  auto const choose = [&](u32 part) {
    check(cudaSetDevice(static_cast<int>(world.devices()[part]->index())));
  };
  for (u32 part = 0; part < parts; ++part)
    arrays.emplace_back(*world.devices()[part], part_of<u64>(plan, part, 0, true, false));
  constexpr u32 steps = 3;
  for (u32 part = 0; part < parts; ++part) {
    choose(part);
    auto const stream = static_cast<cudaStream_t>(streams[part].native());
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (u32 step = 0; step < steps; ++step) {
      exchange.start(part, arrays[part].span());
      exchange.finish(part, arrays[part].span());
    }
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&graphs[part], graph, 0));
    check(cudaGraphDestroy(graph));
  }
  for (u64 round = 1; round < 20; ++round) {
    for (u32 part = 0; part < parts; ++part)
      arrays[part].write(part_of<u64>(plan, part, round, true, false));
    for (u32 part = 0; part < parts; ++part) {
      choose(part);
      check(cudaGraphLaunch(graphs[part], static_cast<cudaStream_t>(streams[part].native())));
    }
    for (u32 part = 0; part < parts && round % 3 == 0; ++part) {
      exchange.start(part, arrays[part].span());
      exchange.finish(part, arrays[part].span());
    }
    for (auto& stream : streams) stream.synchronize();
    for (u32 part = 0; part < parts; ++part)
      ASSERT_EQ(arrays[part].read(), part_of<u64>(plan, part, round, true, true)) << round;
  }
  for (auto const graph : graphs) check(cudaGraphExecDestroy(graph));
}

#endif

}  // namespace
}  // namespace meshpost::stream_exchange_job_tests
