// Streams of two devices that send to each other: half a round trip; the host's time to put an
// operation on a stream; a stream's put at full rate. All operations lie on the streams before the
// first begins, so the host's speed does not count.
#include <benchmark/benchmark.h>
#if defined(MESHPOST_BENCH_GRAPHS)
#include <cuda_runtime_api.h>
#endif

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "worlds.hpp"

namespace {

using namespace meshpost;
using bench::microseconds;

constexpr u64 most_bytes = u64{256} << 20;
constexpr u32 few = 10, many = 110;  // round trips; the difference has no begin and no end

struct Pair {
  std::shared_ptr<World> world = bench::world(2, 1);
  Window<char> box = world->window<char>(most_bytes, Tags{4}, "box");
  StreamEndpoint a{*world, 0, "a"}, b{*world, 1, "b"};
  std::span<char const> source_of(u32 device, u64 bytes) {
    return {sources[device].as<char>(), bytes};
  }
  std::vector<Allocation> sources = [this] {
    std::vector<Allocation> made;
    for (auto const& device : world->devices()) {
      made.push_back(device->allocate(Bytes{most_bytes}, MemoryKind::device));
      device->fill(made.back().data(), 1, Bytes{most_bytes});
    }
    return made;
  }();

  /// Streams begin when the host says so.
  void hold_streams() {
    a.wait(box, Tag{3});
    b.wait(box, Tag{3});
  }
  void let_streams_go() {
    box.notify(a.id(), Tag{3});
    box.notify(b.id(), Tag{3});
  }
  void finish() {
    a.synchronize();
    b.synchronize();
  }
  void round_trip(u64 bytes) {
    a.put_notify(box.at(RankId{1}), source_of(0, bytes), b.id(), Tag{0});
    b.wait(box, Tag{0});
    b.put_notify(box.at(RankId{0}), source_of(1, bytes), a.id(), Tag{0});
    a.wait(box, Tag{0});
  }
  double time_of(u32 trips, u64 bytes) {
    hold_streams();
    for (u32 i = 0; i < trips; ++i) round_trip(bytes);
    auto const begin = std::chrono::steady_clock::now();
    let_streams_go();
    finish();
    return microseconds(begin);
  }
};

// Made when it is first needed, and kept.
Pair* pair_of(benchmark::State& state) {
  static std::unique_ptr<Pair> kept;
  if (!kept && bench::device_count() >= 2) kept = std::make_unique<Pair>();
  if (!kept) state.SkipWithError("needs more devices");
  return kept.get();
}

void one_way(benchmark::State& state) {
  auto* const pair = pair_of(state);
  if (!pair) return;
  auto const bytes = static_cast<u64>(state.range(0));
  if (bytes > most_bytes) return state.SkipWithError("longer than 256 MiB");
  pair->time_of(few, bytes);
  for (auto _ : state) {
    double const before = pair->time_of(few, bytes), all = pair->time_of(many, bytes);
    state.SetIterationTime((all - before) / (2 * (many - few)) * 1e-6);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}

// The same by messages, which the receiver takes out of a message window.
void message(benchmark::State& state) {
  auto* const pair = pair_of(state);
  if (!pair) return;
  static MessageWindow const mail(*pair->world, {.tags = 1});
  auto const bytes = static_cast<u64>(state.range(0));
  auto const time_of = [&](u32 trips) {
    pair->hold_streams();
    for (u32 i = 0; i < trips; ++i) {
      std::span<char> const one(pair->sources[0].as<char>(), bytes),
          other(pair->sources[1].as<char>(), bytes);
      pair->a.send(mail, pair->b.id(), one, Tag{0});
      pair->b.receive(mail, pair->a.id(), other, Tag{0});
      pair->b.send(mail, pair->a.id(), other, Tag{0});
      pair->a.receive(mail, pair->b.id(), one, Tag{0});
    }
    auto const begin = std::chrono::steady_clock::now();
    pair->let_streams_go();
    pair->finish();
    return microseconds(begin);
  };
  time_of(few);
  for (auto _ : state) {
    double const before = time_of(few), all = time_of(many);
    state.SetIterationTime((all - before) / (2 * (many - few)) * 1e-6);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}

// Of an operation, when nothing holds the host up.
void host_time(benchmark::State& state) {
  auto* const pair = pair_of(state);
  if (!pair) return;
  for (auto _ : state) {
    pair->hold_streams();
    auto const begin = std::chrono::steady_clock::now();
    for (u32 i = 0; i < 50; ++i) pair->round_trip(8);
    state.SetIterationTime(microseconds(begin) / 200 * 1e-6);
    pair->let_streams_go();
    pair->finish();
  }
}

#if defined(MESHPOST_BENCH_GRAPHS)
// The same replayed from graphs, one for each device, a thousand times before.
class Replay {
 public:
  Replay(Pair& pair, u32 trips) : streams_{stream_of(pair.a), stream_of(pair.b)} {
    for (auto const stream : streams_)
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (u32 i = 0; i < trips; ++i) pair.round_trip(8);
    std::array<cudaGraph_t, 2> captured{};
    for (u32 d = 0; d < 2; ++d) check(cudaStreamEndCapture(streams_[d], &captured[d]));
    for (u32 d = 0; d < 2; ++d) {
      check(cudaGraphInstantiate(&graphs_[d], captured[d], 0));
      check(cudaGraphDestroy(captured[d]));
    }
  }
  static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "a graph of streams: %s\n", cudaGetErrorString(status));
    std::exit(1);
  }
  Replay(Replay const&) = delete;
  Replay& operator=(Replay const&) = delete;
  ~Replay() {
    for (auto const graph : graphs_) cudaGraphExecDestroy(graph);
  }
  void launch() {
    for (u32 d = 0; d < 2; ++d) check(cudaGraphLaunch(graphs_[d], streams_[d]));
  }

 private:
  static cudaStream_t stream_of(StreamEndpoint const& end) {
    return static_cast<cudaStream_t>(end.native());
  }
  std::array<cudaStream_t, 2> streams_;
  std::array<cudaGraphExec_t, 2> graphs_{};
};

void graph_one_way(benchmark::State& state) {
  auto* const pair = pair_of(state);
  if (!pair) return;
  if (bench::kind() != "cuda") return state.SkipWithError("needs GPUs");
  Replay shorter(*pair, few), longer(*pair, many);
  auto const time_of = [&](Replay& replay) {
    pair->hold_streams();
    replay.launch();
    auto const begin = std::chrono::steady_clock::now();
    pair->let_streams_go();
    pair->finish();
    return microseconds(begin);
  };
  for (u32 i = 0; i < 1000; ++i) shorter.launch();
  pair->finish();
  for (auto _ : state) {
    double const before = time_of(shorter), all = time_of(longer);
    state.SetIterationTime((all - before) / (2 * (many - few)) * 1e-6);
  }
}
#endif

void add(std::vector<std::int64_t> const& all_bytes) {
  auto* const sizes = benchmark::RegisterBenchmark("stream_put_notify_one_way", one_way);
  sizes->ArgName("bytes")->Iterations(5)->UseManualTime();
  for (auto const bytes : all_bytes) sizes->Arg(bytes);
#if defined(MESHPOST_BENCH_GRAPHS)
  benchmark::RegisterBenchmark("stream_graph_one_way", graph_one_way)
      ->Iterations(10)
      ->UseManualTime();
#endif
}

[[maybe_unused]] bool const registered = [] {
  std::vector<std::int64_t> const all_bytes{0, 8, 1024, 65536, 1048576, 16777216, 268435456};
  add(all_bytes);
  auto* const messages = benchmark::RegisterBenchmark("stream_message_one_way", message);
  messages->ArgName("bytes")->Iterations(5)->UseManualTime();
  for (auto const bytes : all_bytes) messages->Arg(bytes);
  benchmark::RegisterBenchmark("stream_operation_host_time", host_time)
      ->Iterations(20)
      ->UseManualTime();
  return true;
}();

}  // namespace

void bench::add_streams(std::vector<std::int64_t> const& sizes) { add(sizes); }
