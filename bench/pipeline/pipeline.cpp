// A pipeline's time relative to its slowest stage. Data in pinned host memory go to a device, are
// computed on, and come back. The computation is some copies within the device's memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <meshpost/pipeline/pipeline.hpp>

#include "worlds.hpp"

namespace {

using namespace meshpost;
using Clock = std::chrono::steady_clock;

struct Case {
  std::shared_ptr<Device> device = open_devices(Config::from_environment().devices).front();
  bool gpu = bench::kind() != "cpu";
  u64 total = (gpu ? u64{2} << 30 : u64{256} << 20), chunk, repeats;
  Allocation from = device->allocate(Bytes{total}, MemoryKind::pinned);
  Allocation to = device->allocate(Bytes{total}, MemoryKind::pinned);
  Allocation in = device->allocate(Bytes{chunk}, MemoryKind::device);
  Allocation out = device->allocate(Bytes{chunk}, MemoryKind::device);

  Case(u64 chunk_, u64 repeats_) : chunk(chunk_), repeats(repeats_) {
    device->fill(from.data(), 1, Bytes{total});
    device->fill(to.data(), 2, Bytes{total});
  }
  void put_copies(Stream& stream, void* target, void const* source, Bytes size) const {
    for (u64 i = 0; i < repeats; ++i) stream.copy(target, source, size);
  }
  PipelineOptions options(u32 depth) const {
    PipelineOptions wanted;
    wanted.levels = {{device, MemoryKind::pinned}, {device, MemoryKind::device}};
    wanted.items = total;
    wanted.chunk = chunk;
    wanted.item = Bytes{1};
    wanted.depth = depth;
    wanted.segments = [this](ChunkMove const& move) {
      return std::vector<Segment>{
          move.whole(to.as<char>() + move.first, from.as<char>() + move.first)};
    };
    wanted.compute.push_back({1, [this](ChunkWork const& work, Stream& stream) {
                                put_copies(stream, work.out, work.in, work.size);
                              }});
    return wanted;
  }
  /// Seconds of all chunks of these stages alone, one after the other, with a stream for each
  /// stage. On the host they are the library's own copies, which use several threads.
  double alone(bool load, bool comp, bool save) const {
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(device->make_stream());
    auto const move = [&](Stream& stream, void* target, void const* source) {
      gpu ? stream.copy(target, source, Bytes{chunk}) : copy(target, source, Bytes{chunk});
    };
    auto const begin = Clock::now();
    for (u64 at = 0; at < total; at += chunk) {
      if (load) move(*streams[0], in.data(), from.as<char>() + at);
      if (comp) put_copies(*streams[1], out.data(), in.data(), Bytes{chunk});
      if (save) move(*streams[2], to.as<char>() + at, out.data());
    }
    for (auto const& stream : streams) stream->synchronize();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
};

double best(auto&& measure) {
  double least = measure();
  for (int i = 0; i < 4; ++i) least = std::min(least, measure());
  return least;
}

// of_slowest: the pipeline's time divided by that of its slowest stage alone. of_floor: divided by
// that time, or by the time of both directions of the link at once, if that is longer.
void pipelined_compute(benchmark::State& state) {
  Case const work(static_cast<u64>(state.range(0)) << 20, static_cast<u64>(state.range(1)));
  Pipeline pipeline(work.options(static_cast<u32>(state.range(2))));
  double const load = best([&] { return work.alone(true, false, false); });
  double const comp = best([&] { return work.alone(false, true, false); });
  double const save = best([&] { return work.alone(false, false, true); });
  double const slowest = std::max({load, comp, save});
  double const floor =
      work.gpu ? std::max(slowest, best([&] { return work.alone(true, false, true); })) : slowest;
  pipeline.run();
  double total = 0;
  for (auto _ : state) {
    double const seconds = pipeline.run().seconds;
    state.SetIterationTime(seconds);
    total += seconds;
  }
  total /= static_cast<double>(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<i64>(work.total));
  state.counters["of_slowest"] = total / slowest;
  state.counters["of_floor"] = total / floor;
  state.counters["of_sum"] = total / (load + comp + save);
}

void axes(benchmark::internal::Benchmark* one) {
  one->ArgNames({"MiB", "copies", "depth"});
  for (i64 const chunk : {4, 16, 64})
    for (i64 const copies : {1, 40, 160}) one->Args({chunk, copies, 2});
  one->Args({16, 40, 1});
  one->Args({16, 40, 3});
}
BENCHMARK(pipelined_compute)->Apply(axes)->UseManualTime()->Iterations(8);

}  // namespace
