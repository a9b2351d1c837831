// Exchanges on streams: halos are those of their step, whatever the plan and however late streams
// are.
#include "array/kernels/stream_exchange.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "array/kernels/exchange.hpp"
#include "meshpost/compat/lama.hpp"
#include "support/errors.hpp"

namespace meshpost::stream_exchange_tests {
namespace {

using namespace std::chrono_literals;
using test::Blob;
using test::error_of;
using test::exchange_on;
using test::part_of;
using test::PartArray;
using test::RandomNeeds;
using Reach = test::ExchangeReach;
using test::says;

class StreamExchanges : public testing::TestWithParam<Reach> {
 protected:
  World world_{test::options_for(GetParam())};
  std::vector<StreamEndpoint> streams_ = test::streams_of(world_);
  u32 parts() const { return world_.device_count(); }

  Plan random_plan(u64 seed) const {
    RandomNeeds const random(seed, parts());
    return Plan::from_indices(random.distribution, random.needs);
  }
  template <class T>
  void expect_right(Plan const& plan, u64 seed) {
    auto const exchange = exchange_on<T>(world_, plan, streams_);
    EXPECT_EQ(test::wrong_stream_steps<T>(plan, exchange, world_, streams_, seed), "");
    free_exchange(world_, exchange);
  }
  template <class T>
  void expect_right_back(Plan const& plan, u64 seed) {
    using enum StreamCombine;
    for (auto const combine : {replace, sum, minimum, maximum})
      EXPECT_EQ(test::wrong_stream_reverse<T>(plan, world_, streams_, seed, combine), "");
  }
};

TEST_P(StreamExchanges, bring_each_halo_its_step) {
  for (int round = 0; round < (test::sanitized ? 2 : 4); ++round) {
    u64 const seed = std::random_device{}();
    SCOPED_TRACE(seed);
    expect_right<double>(random_plan(seed), seed);
  }
}

TEST_P(StreamExchanges, take_elements_of_any_size) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  auto const plan = random_plan(seed);
  expect_right<Blob<1>>(plan, seed);
  expect_right<Blob<2>>(plan, seed);
  expect_right<Blob<3>>(plan, seed);
  expect_right<float>(plan, seed);
  expect_right<Blob<12>>(plan, seed);
  expect_right<Blob<16>>(plan, seed);
  expect_right<Blob<24>>(plan, seed);
  expect_right<Blob<64>>(plan, seed);
}

TEST_P(StreamExchanges, combine_in_the_order_of_the_parts) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  auto const plan = random_plan(seed);
  expect_right_back<double>(plan, seed);
  expect_right_back<float>(plan, seed);
  expect_right_back<i64>(plan, seed);
  expect_right_back<unsigned short>(plan, seed);
  expect_right_back<signed char>(plan, seed);
  auto const replaced =
      test::wrong_stream_reverse<Blob<12>>(plan, world_, streams_, seed, StreamCombine::replace);
  EXPECT_EQ(replaced, "");
}

// Device 0 sends to all others, and receives nothing. It is far ahead: the others wait for a word
// of the host.
TEST_P(StreamExchanges, keep_a_sender_that_receives_nothing_from_writing_too_early) {
  u64 const each = 700;
  std::vector<std::vector<u64>> needs(parts());
  for (u32 part = 1; part < parts(); ++part)
    for (u64 i = 0; i < each; ++i) needs[part].push_back(i * 7 % each);
  auto const plan = Plan::from_indices(Distribution::block(each * parts(), parts()), needs);
  auto const exchange = exchange_on<u64>(world_, plan, streams_);
  auto const word = world_.devices()[0]->allocate(Bytes{4}, MemoryKind::pinned);
  *word.as<u32>() = 0;
  constexpr u32 steps = 6;
  std::vector<std::vector<PartArray<u64>>> arrays(parts());
  for (u32 part = 0; part < parts(); ++part) {
    if (part != 0) streams_[part].stream().await_word(word.as<u32>(), 1);
    for (u32 step = 0; step < steps; ++step)
      arrays[part].emplace_back(*world_.devices()[part],
                                part_of<u64>(plan, part, step, true, false));
  }
  for (u32 part = 0; part < parts(); ++part)
    for (auto const& array : arrays[part]) {
      exchange.start(part, array.span());
      exchange.finish(part, array.span());
    }
  std::this_thread::sleep_for(20ms);
  std::atomic_ref(*word.as<u32>()).store(1, std::memory_order_release);
  for (auto& stream : streams_) stream.synchronize();
  for (u32 part = 0; part < parts(); ++part)
    for (u32 step = 0; step < steps; ++step)
      EXPECT_EQ(arrays[part][step].read(), part_of<u64>(plan, part, step, true, true)) << step;
  free_exchange(world_, exchange);
}

TEST_P(StreamExchanges, may_be_in_flight_together) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  auto const plan = random_plan(seed);
  std::vector<StreamExchange<double>> several;
  for (u32 i = 0; i < 3; ++i) several.push_back(exchange_on<double>(world_, plan, streams_));
  std::vector<std::vector<PartArray<double>>> arrays(parts());
  for (u32 part = 0; part < parts(); ++part)
    for (u64 i = 0; i < 3; ++i)
      arrays[part].emplace_back(*world_.devices()[part],
                                part_of<double>(plan, part, i, true, false));
  for (u32 part = 0; part < parts(); ++part) {
    for (u32 i = 0; i < 3; ++i) several[i].start(part, arrays[part][i].span());
    for (u32 i = 3; i-- > 0;) several[i].finish(part, arrays[part][i].span().data());
  }
  for (auto& stream : streams_) stream.synchronize();
  for (u32 part = 0; part < parts(); ++part)
    for (u64 i = 0; i < 3; ++i)
      EXPECT_EQ(arrays[part][i].read(), part_of<double>(plan, part, i, true, true)) << i;
  for (auto const& one : several) free_exchange(world_, one);
}

TEST_P(StreamExchanges, are_made_by_the_host_alone) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  auto const plan = random_plan(seed);
  auto const exchange = exchange_on<double>(world_, plan, streams_);
  std::vector<PartArray<double>> arrays;
  std::vector<std::span<double>> spans;
  for (u32 part = 0; part < parts(); ++part) {
    arrays.emplace_back(*world_.devices()[part], part_of<double>(plan, part, 0, true, false));
    spans.push_back(arrays.back().span());
  }
  exchange.exchange(spans);
  for (u32 part = 0; part < parts(); ++part)
    EXPECT_EQ(arrays[part].read(), part_of<double>(plan, part, 0, true, true)) << part;
  free_exchange(world_, exchange);
}

// All devices need the first elements of all.
Plan small_plan(u32 parts) {
  std::vector<u64> all;
  for (u32 part = 0; part < parts; ++part) all.push_back(u64{4} * part);
  return Plan::from_indices(Distribution::block(u64{4} * parts, parts),
                            std::vector<std::vector<u64>>(parts, all));
}

TEST_P(StreamExchanges, refuse_what_is_wrong) {
  auto const plan = small_plan(parts());
  auto const exchange = exchange_on<int>(world_, plan, streams_);
  u64 const size = plan.of(0).size();
  PartArray<int> const array(*world_.devices()[0], std::vector<int>(size + 4));
  auto const said_by = [&](auto const& work, Kind kind,
                           std::initializer_list<std::string_view> pieces) {
    EXPECT_TRUE(says(error_of(work), kind, pieces));
  };
  constexpr auto bad = Kind::bad_argument, misuse = Kind::misuse;
  auto const few = array.span().first(size - 1);
  said_by([&] { exchange.finish(0, array.span()); }, misuse,
          {"StreamExchange::finish, stream 0 of", "there was no start()"});
  said_by([&] { exchange.start(0, few); }, bad,
          {"StreamExchange::start, stream 0 of", "the source has " + std::to_string(size - 1),
           "the plan's part has " + std::to_string(size)});
  said_by([&] { exchange.start(parts(), array.span()); }, bad,
          {"device " + std::to_string(parts()) + " was named", "this process has"});
  said_by([&] { exchange.start(0, static_cast<int*>(nullptr)); }, bad, {"null"});
  said_by(
      [&] {
        exchange.start(0, reinterpret_cast<int*>(reinterpret_cast<char*>(array.span().data()) + 1));
      },
      bad, {"align it to 4 bytes"});
  exchange.start(0, array.span());
  said_by([&] { exchange.start(0, array.span()); }, misuse,
          {"StreamExchange::start", "without finish()", "make several StreamExchanges"});
  said_by([&] { exchange.finish(0, few); }, bad, {"StreamExchange::finish", "the target has"});
  // All that was refused has done nothing.
  std::vector<PartArray<int>> others;
  for (u32 part = 1; part < parts(); ++part) {
    others.emplace_back(*world_.devices()[part], std::vector<int>(size));
    exchange.start(part, others.back().span());
    exchange.finish(part, others.back().span());
  }
  exchange.finish(0, array.span());
  for (auto& stream : streams_) stream.synchronize();

  said_by([&] { exchange.exchange(std::vector<std::span<int>>{}); }, bad,
          {"0 sources and 0 targets"});
  said_by([&] { StreamExchange<int>{}.start(0, array.span()); }, misuse, {"without a plan"});
  std::vector<std::vector<u64>> const more(parts() + 1);
  auto const other = Plan::from_indices(Distribution::block(9, parts() + 1), more);
  said_by([&] { exchange_on<int>(world_, other, streams_); }, bad,
          {"make an exchange on streams", "the plan has"});
  said_by([&] { StreamExchange<int>(world_, plan, {}); }, bad, {"0 streams were given"});
  World foreign(test::options_for(GetParam()));
  auto const elsewhere = test::streams_of(foreign);
  said_by([&] { exchange_on<int>(world_, plan, elsewhere); }, bad,
          {"stream 0 is of another World"});
  if (parts() > 1) {
    auto wrong = std::vector<std::reference_wrapper<StreamEndpoint const>>(streams_.rbegin(),
                                                                           streams_.rend());
    said_by([&] { StreamExchange<int>(world_, plan, wrong); }, bad,
            {"stream 0 is of " + world_.devices().back()->name()});
  }
  struct Pair {
    int a, b;
  };
  auto const of_pairs = exchange_on<Pair>(world_, plan, streams_);
  PartArray<Pair> const pairs(*world_.devices()[0], std::vector<Pair>(size));
  of_pairs.start(0, pairs.span());
  said_by([&] { of_pairs.finish(0, pairs.span(), StreamCombine::sum); }, bad,
          {"StreamExchange::finish", "no numbers"});
  std::vector<PartArray<Pair>> more_pairs;
  for (u32 part = 1; part < parts(); ++part) {
    more_pairs.emplace_back(*world_.devices()[part], std::vector<Pair>(size));
    of_pairs.start(part, more_pairs.back().span());
    of_pairs.finish(part, more_pairs.back().span());
  }
  of_pairs.finish(0, pairs.span());
  free_exchange(world_, of_pairs);
  free_exchange(world_, exchange);
  said_by([&] { exchange.start(0, array.span()); }, bad, {"'exchange' was freed before"});
  streams_.clear();
  said_by([&] { exchange.start(0, array.span()); }, misuse, {"does not exist any more"});
}

TEST_P(StreamExchanges, say_how_they_go) {
  auto const exchange = exchange_on<double>(world_, small_plan(parts()), streams_);
  auto const text = exchange.explain(0);
  EXPECT_NE(text.find("stream 0 of " + world_.devices()[0]->name()), text.npos) << text;
  if (parts() > 1) {
    EXPECT_NE(text.find("to part 1 ("), text.npos) << text;
    EXPECT_NE(text.find(GetParam() == Reach::apart ? "packed" : "stored there"), text.npos) << text;
  }
  free_exchange(world_, exchange);
}

INSTANTIATE_TEST_SUITE_P(Reaches, StreamExchanges,
                         testing::Values(Reach::one_device, Reach::several_devices, Reach::apart),
                         test::reach_name);

// More than a kernel's arguments have room for: the lists in the device's memory are used.
TEST(StreamExchangesOfManyDevices, find_their_peers_in_long_lists) {
  World world(test::options(1, "cpu:1*7"));
  auto streams = test::streams_of(world);
  u32 const parts = world.device_count();
  ASSERT_GT(parts - 1, StreamList<StreamPiece>::few);
  std::vector<std::vector<u64>> first(parts);  // elements of part 0, by all others
  for (u32 part = 1; part < parts; ++part) first[part] = {part % 4, 0};
  auto const one_way = Plan::from_indices(Distribution::block(u64{4} * parts, parts), first);
  u64 const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  for (auto const& plan : {small_plan(parts), one_way}) {
    auto const exchange = exchange_on<double>(world, plan, streams);
    EXPECT_EQ(test::wrong_stream_steps<double>(plan, exchange, world, streams, seed), "");
    EXPECT_EQ(test::wrong_stream_reverse<double>(plan, world, streams, seed, StreamCombine::sum),
              "");
    free_exchange(world, exchange);
  }
}

static_assert(detail::stream_number<float>() == StreamNumber::float32);
static_assert(detail::stream_number<double>() == StreamNumber::float64);
static_assert(detail::floating_number(2) == StreamNumber::none, "half precision");
static_assert(detail::stream_number<long double>() == StreamNumber::none);
static_assert(detail::stream_number<bool>() == StreamNumber::none);

// On the devices that arrays know.
TEST(StreamExchangesOfArrays, have_lamas_name) {
  World world(test::options(1));
  auto const streams = test::streams_of(world);
  u64 const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  RandomNeeds const random(seed, world.device_count());
  lama::CommunicationPlan const plan = Plan::from_indices(random.distribution, random.needs);
  auto const exchange = exchange_on<double>(world, plan, streams);
  std::vector<PartArray<double>> memory;
  std::vector<double*> pointers;
  std::vector<lama::LAMAArray<double>> arrays;
  for (u32 part = 0; part < world.device_count(); ++part) {
    auto const values = part_of<double>(plan, part, 0, true, false);
    EXPECT_EQ(exchange.size(part), values.size());
    memory.emplace_back(*world.devices()[part], values);
    pointers.push_back(memory.back().span().data());
    arrays.emplace_back(values, "part " + std::to_string(part));
  }
  lama::exchangeByPlan(exchange, pointers);
  lama::exchangeByPlan<double>(world, exchange, {arrays.begin(), arrays.end()});
  std::vector<std::reference_wrapper<lama::LAMAArray<double>>> other(arrays.begin(), arrays.end());
  other.emplace_back(arrays[0]);
  for (auto const& given : {other, {}})
    EXPECT_TRUE(says(error_of([&] { lama::exchangeByPlan<double>(world, exchange, given); }),
                     Kind::bad_argument,
                     {"exchangeByPlan", std::to_string(given.size()) + " arrays were given"}));
  for (u32 part = 0; part < world.device_count(); ++part) {
    auto const expected = part_of<double>(plan, part, 0, true, true);
    EXPECT_EQ(memory[part].read(), expected) << part;
    auto const come = arrays[part].read();
    EXPECT_TRUE(std::ranges::equal(std::span(come.data(), come.size()), expected)) << part;
  }
  free_exchange(world, exchange);
}

}  // namespace
}  // namespace meshpost::stream_exchange_tests
