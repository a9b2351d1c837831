// Exchanges on streams that fail: who is named, and which exchanges are refused afterwards.
#include "array/kernels/stream_exchange.hpp"
#include "support/errors.hpp"

namespace meshpost::stream_exchange_failure_tests {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::exchange_on;
using test::part_of;
using test::PartArray;
using test::says;
using Reach = test::ExchangeReach;

class StreamExchangeFailures : public testing::TestWithParam<Reach> {};

// Elements 0 and 4 go between the first two parts, or one way only.
Plan plan_of_two(u32 parts, bool both) {
  std::vector<std::vector<u64>> needs(parts);
  needs[1] = {0};
  if (both) needs[0] = {4};
  return Plan::from_indices(Distribution::block(u64{4} * parts, parts), needs);
}

using Arrays = std::vector<PartArray<u64>>;

Arrays arrays_of(World const& world, Plan const& plan) {
  Arrays arrays;
  for (u32 part = 0; part < world.device_count(); ++part)
    arrays.emplace_back(*world.devices()[part], part_of<u64>(plan, part, 0, true, false));
  return arrays;
}

// More than there is room for.
void three_steps(StreamExchange<u64> const& exchange, Arrays const& arrays) {
  for (u32 step = 0; step < 3; ++step)
    for (u32 part = 0; part < arrays.size(); ++part) {
      exchange.start(part, arrays[part].span());
      exchange.finish(part, arrays[part].span());
    }
}

// The error if the deadline ended the work.
template <class Work>
std::optional<Error> deadline_of(Work&& work) {
  try {
    work();
  } catch (Error const& error) {
    if (error.kind() != Kind::deadline) throw;
    return error;
  }
  return {};
}

void expect_step(Plan const& plan, Arrays const& arrays) {
  for (u32 part = 0; part < arrays.size(); ++part)
    EXPECT_EQ(arrays[part].read(), part_of<u64>(plan, part, 0, true, true)) << part;
}

// Another operation of a stream fails, without a deadline: a message is longer than its target.
void fail_by_a_message(World& world, std::vector<StreamEndpoint>& streams, u32 failing) {
  u32 const other = 1 - failing;
  MessageWindow const box(world, {.slots = 4, .slot_bytes = 256});
  PartArray<u64> const from(*world.devices()[other], {1, 2}), to(*world.devices()[failing], {0});
  streams[other].send(box, streams[failing].id(), from.span(), Tag{0});
  streams[failing].receive(box, streams[other].id(), to.span(), Tag{0});
  streams[other].synchronize();
  EXPECT_TRUE(says(error_of([&] { streams[failing].synchronize(); }), Kind::bad_argument,
                   {"16 bytes", "the target has 8"}));
  world.free(box.window());
}

TEST_P(StreamExchangeFailures, name_the_peer_and_refuse_the_exchange_afterwards) {
  World world(test::options_for(GetParam(), test::sanitized ? 1000ms : 200ms));
  if (world.device_count() == 1) GTEST_SKIP() << "needs two devices";
  std::vector<StreamEndpoint> streams;
  for (u32 i = 0; i < world.device_count(); ++i)
    streams.emplace_back(world, i, "halo " + std::to_string(i));
  auto const plan = plan_of_two(world.device_count(), true);
  auto const arrays = arrays_of(world, plan);
  auto exchange = exchange_on<u64>(world, plan, streams);
  exchange.start(0, arrays[0].span());
  exchange.finish(0, arrays[0].span());
  auto const error = error_of([&] { streams[0].synchronize(); });
  EXPECT_TRUE(says(error, Kind::deadline,
                   {"StreamExchange::finish, stream 'halo 0' of", "window 'exchange'",
                    "from stream 0 of device 1 ('halo 1'), which has not started it",
                    "on all devices, equally often"}));
  for (u32 again = 0; again < 2; ++again)
    EXPECT_TRUE(
        says(error_of([&] { exchange.start(0, arrays[0].span()); }), Kind::misuse,
             {"StreamExchange::start, stream 'halo 0' of", "before one of its operations failed",
              "free the exchange, and make a new one"}));
  // A busy machine may take longer than the deadline for good steps, too.
  std::optional<Error> late;
  for (u32 left = 20; left > 0; --left) {
    free_exchange(world, exchange);
    exchange = exchange_on<u64>(world, plan, streams);
    late = deadline_of([&] { three_steps(exchange, arrays); });
    for (auto& stream : streams)
      if (auto const one = deadline_of([&] { stream.synchronize(); })) late = one;
    if (!late) break;
  }
  if (late) FAIL() << late->what();
  expect_step(plan, arrays);
}

// No step was started, or one is half done.
TEST_P(StreamExchangeFailures, of_other_operations_spoil_used_and_unused_exchanges) {
  World world(test::options_for(GetParam()));
  if (world.device_count() == 1) GTEST_SKIP() << "needs two devices";
  auto streams = test::streams_of(world);
  for (bool const both : {false, true})
    for (bool const used : {false, true}) {
      SCOPED_TRACE(testing::Message() << (both ? "both ways, " : "one way, ") << used);
      auto const plan = plan_of_two(world.device_count(), both);
      auto const arrays = arrays_of(world, plan);
      auto exchange = exchange_on<u64>(world, plan, streams);
      if (used) exchange.start(0, arrays[0].span());
      fail_by_a_message(world, streams, 0);
      EXPECT_TRUE(says(error_of([&] { exchange.start(0, arrays[0].span()); }), Kind::misuse,
                       {"StreamExchange::start, stream 0 of", "took part in the exchange before",
                        "free the exchange, and make a new one"}));
      free_exchange(world, exchange);
      exchange = exchange_on<u64>(world, plan, streams);
      three_steps(exchange, arrays);
      for (auto& stream : streams) stream.synchronize();
      expect_step(plan, arrays);
      free_exchange(world, exchange);
    }
}

// Else its other devices would wait for that one, and be spoilt too.
TEST_P(StreamExchangeFailures, of_one_device_keep_a_step_of_all_from_beginning) {
  World world(test::options_for(GetParam()));
  if (world.device_count() == 1) GTEST_SKIP() << "needs two devices";
  auto streams = test::streams_of(world);
  auto const plan = plan_of_two(world.device_count(), true);
  auto const arrays = arrays_of(world, plan);
  std::vector<std::span<u64>> all;
  for (auto const& array : arrays) all.push_back(array.span());
  auto exchange = exchange_on<u64>(world, plan, streams);
  exchange.exchange(all);
  exchange.start(1, all[1]);
  EXPECT_TRUE(says(error_of([&] { exchange.exchange(all); }), Kind::misuse,
                   {"StreamExchange::start, stream 0 of", "without finish()"}));
  exchange.start(0, all[0]);  // had not started
  for (u32 part = 2; part < arrays.size(); ++part) exchange.start(part, all[part]);
  for (u32 part = 0; part < arrays.size(); ++part) exchange.finish(part, all[part]);
  for (auto& stream : streams) stream.synchronize();
  expect_step(plan, arrays);

  fail_by_a_message(world, streams, 1);
  EXPECT_TRUE(says(error_of([&] { exchange.exchange(all); }), Kind::misuse,
                   {"StreamExchange::start, stream 0 of " + world.devices()[1]->name(),
                    "took part in the exchange"}));
  exchange.start(0, all[0]);
  streams[0].synchronize();
}

// The receiver takes nothing: the third step finds no room.
TEST_P(StreamExchangeFailures, name_a_receiver_that_never_finishes) {
  World world(test::options_for(GetParam(), test::sanitized ? 1000ms : 200ms));
  if (world.device_count() == 1) GTEST_SKIP() << "needs two devices";
  auto streams = test::streams_of(world);
  auto const plan = plan_of_two(world.device_count(), false);
  auto const exchange = exchange_on<u64>(world, plan, streams);
  PartArray<u64> const array(*world.devices()[0], std::vector<u64>(plan.of(0).size()));
  for (u32 step = 0; step < 2; ++step) {
    exchange.start(0, array.span());
    exchange.finish(0, array.span());
  }
  streams[0].synchronize();
  exchange.start(0, array.span());
  auto const error = error_of([&] { streams[0].synchronize(); });
  EXPECT_TRUE(says(error, Kind::deadline,
                   {"StreamExchange::start", "stream 0 of device 1",
                    "had not finished the step before the last one"}));
}

INSTANTIATE_TEST_SUITE_P(Reaches, StreamExchangeFailures,
                         testing::Values(Reach::several_devices, Reach::apart), test::reach_name);

}  // namespace
}  // namespace meshpost::stream_exchange_failure_tests
