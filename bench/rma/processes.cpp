// Costs between two ranks of two processes. If started by meshpost-run (as by tools/bench.py), all
// processes run only these benchmarks, side by side. Process 0 reports. Benchmarks of one process,
// to compare with, run in process 0. Meanwhile the others wait in the next World's constructor.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>

#include "rma/ping_pong.hpp"
#include "worlds.hpp"

namespace {

using namespace meshpost;
using bench::Flags, bench::own_device, bench::PingPong, bench::Stream;

enum class Distance { one_worker, two_workers, two_processes };

bool on_gpus() { return bench::kind() == "cuda"; }

/// Two ranks, each of one device. Null if this process does not take part.
std::unique_ptr<World> two_ranks(Distance distance) {
  bool const alone = distance != Distance::two_processes;
  if (alone && bench::process() != 0) return nullptr;
  WorldOptions options;
  options.devices = !alone ? own_device() : on_gpus() ? "cuda:0,1" : "cpu:2";
  options.ranks = 1;
  options.workers = distance == Distance::two_workers ? 2 : 1;
  options.alone = alone;
  return std::make_unique<World>(options);
}

template <class Once>
void measure(benchmark::State& state, Distance distance, u64 bytes, Once&& once) {
  auto const world = two_ranks(distance);
  if (!world) {
    state.SkipWithError("runs in process 0");
    return;
  }
  auto const data = world->window<char>(bench::outgoing(bytes) + bytes);
  auto const elapsed = world->window<u64>(1);
  for (auto _ : state) state.SetIterationTime(once(*world, data, elapsed) * 1e-9);
  if (bytes > 0) state.SetBytesProcessed(static_cast<i64>(bytes) * state.iterations());
}

double nanoseconds(Window<u64> const& elapsed) {
  return static_cast<double>(elapsed.read(RankId{0})[0]);
}

/// The floor: raised and polled words, without scheduler and counters.
void flag(benchmark::State& state, Distance distance) {
  u32 const rounds = 1000;
  measure(state, distance, 0, [&](World& world, auto&, auto& elapsed) {
    auto const words = world.window<u32>(1);
    world.run(Flags{words, elapsed, rounds});
    world.free(words);
    return nanoseconds(elapsed) / rounds / 2;
  });
}

void one_way_between(benchmark::State& state, Distance distance, u64 bytes) {
  auto const rounds =
      static_cast<u32>(std::clamp<u64>((u64{64} << 20) / std::max<u64>(bytes, 1), 10, 1000));
  measure(state, distance, bytes, [&](World& world, auto& data, auto& elapsed) {
    world.run(PingPong{data, elapsed, bytes, 1, rounds / 10 + 1, rounds});
    return nanoseconds(elapsed) / rounds / 2;
  });
}

void stream(benchmark::State& state, Distance distance, u64 bytes) {
  u32 const puts = 16;
  measure(state, distance, bytes, [&](World& world, auto& data, auto& elapsed) {
    world.run(
        Stream{data, elapsed, bytes, 1, 1, false});  // the first touch of each page by a process
    world.run(Stream{data, elapsed, bytes, 1, puts, false});
    return nanoseconds(elapsed) / puts;
  });
}

struct NothingInJob {
  MESHPOST_FN void operator()(Rank&) const {}
};

WorldOptions one_device() {
  WorldOptions options;
  options.devices = own_device();
  return options;
}

/// All processes have joined already, because bench::process() needs it, and have their contexts.
void start(benchmark::State& state) {
  auto const options = one_device();
  std::unique_ptr<World> world;
  World({.devices = "cpu:1", .ranks = 1});  // waits for all
  for (auto _ : state) {
    auto const begin = std::chrono::steady_clock::now();
    world = std::make_unique<World>(options);
    state.PauseTiming();
    std::chrono::duration<double, std::micro> const took = std::chrono::steady_clock::now() - begin;
    state.counters.try_emplace("first_us", took.count());
    world->run(NothingInJob{});
    world.reset();
    state.ResumeTiming();
  }
}

void run_nothing_in_job(benchmark::State& state) {
  World world(one_device());
  world.run(NothingInJob{});  // the first launch of a kernel is agreed on
  for (auto _ : state) world.run(NothingInJob{});
}

/// A window that takes new memory, which each process maps from all others; or one that needs none.
void make_window(benchmark::State& state, bool grows) {
  auto options = one_device();
  options.ranks = 1;
  World world(options);
  // A little less than the piece of memory that it takes, so that nothing is left for the next one.
  u64 const bytes = grows ? (4 << 20) - (4 << 10) : 16;
  for (auto _ : state) benchmark::DoNotOptimize(world.window<char>(bytes));
}

template <class Measure, class... More>
void add_between(std::string const& name, Measure&& measure, More... more) {
  benchmark::RegisterBenchmark(name.c_str(), measure, more...)->Iterations(1)->UseManualTime();
}

}  // namespace

std::string bench::own_device() {
  if (!on_gpus()) return "cpu:1";
  return "cuda:" + std::to_string(process() % device_count());
}

void bench::add_between_processes() {
  if (processes() == 2) {
    add_streams_between_processes();
    for (auto const& [distance, name] :
         {std::pair{Distance::one_worker, std::string("one_worker")},
          std::pair{Distance::two_workers, std::string(on_gpus() ? "two_devices" : "two_workers")},
          std::pair{Distance::two_processes, std::string("two_processes")}}) {
      if (on_gpus() && distance == Distance::one_worker) continue;
      bool const in_reach = std::getenv("MESHPOST_NODE") == nullptr;  // of loads and stores
      if (distance != Distance::one_worker && in_reach)
        add_between("flag_between/" + name, flag, distance);
      add_between("notify_between/" + name, one_way_between, distance, u64{0});
      for (u64 const bytes : {8, 64, 1 << 10, 64 << 10, 1 << 20})
        add_between("put_notify_between/" + name + "/bytes:" + std::to_string(bytes),
                    one_way_between, distance, bytes);
      for (u64 const bytes : {64 << 10, 1 << 20, 16 << 20})
        add_between("put_stream_between/" + name + "/bytes:" + std::to_string(bytes), stream,
                    distance, bytes);
    }
  }
  auto const of = "/processes:" + std::to_string(processes());
  benchmark::RegisterBenchmark(("world_start_in_job" + of).c_str(), start)
      ->Iterations(20)
      ->UseRealTime();
  benchmark::RegisterBenchmark(("run_nothing_in_job" + of).c_str(), run_nothing_in_job)
      ->Iterations(500)
      ->UseRealTime();
  for (bool const grows : {false, true}) {
    auto const name = "window_in_job/grows:" + std::to_string(grows) + of;
    benchmark::RegisterBenchmark(name.c_str(), make_window, grows)->Iterations(20)->UseRealTime();
  }
}
