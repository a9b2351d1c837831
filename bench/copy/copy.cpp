// Rates of copies between places, beside those of the driver or of plain threads.
#include <algorithm>
#include <string>
#include <thread>

#include "copy/places.hpp"

namespace {

using namespace bench;

// Source and target: "pinned", "pageable", or the number of a device.
Allocation at(std::string const& place, u64 size) {
  if (place == "pinned") return memory(0, size, MemoryKind::pinned);
  if (place == "pageable") return memory(0, size, MemoryKind::pageable);
  return memory(static_cast<u32>(std::stoul(place)), size, MemoryKind::device);
}

bool lacks(benchmark::State& state, std::string const& place) {
  bool const there = place[0] == 'p' || std::stoul(place) < devices().size();
  if (!there) state.SkipWithError("needs more devices");
  return !there;
}

void copy_between(benchmark::State& state, std::string const& from, std::string const& to) {
  if (lacks(state, from) || lacks(state, to)) return;
  auto const size = static_cast<u64>(state.range(0));
  auto const source = at(from, size), target = at(to, size);
  time_each(state, size, [&] { meshpost::copy(target.data(), source.data(), Bytes{size}); });
}

// The floor: one call of the driver, one stream; on CPU devices threads that copy a slice each.
void driver_between(benchmark::State& state, std::string const& from, std::string const& to) {
  if (lacks(state, from) || lacks(state, to)) return;
  auto const size = static_cast<u64>(state.range(0));
  auto const source = at(from, size), target = at(to, size);
#if defined(__CUDACC__)
  if (on_gpus()) {
    cudaStream_t stream = nullptr;
    auto const number = [](std::string const& place) {
      return static_cast<int>(devices()[std::stoul(place)]->index());
    };
    bool const peers = from[0] != 'p' && to[0] != 'p';
    cudaSetDevice(from[0] != 'p' ? number(from) : number(to[0] != 'p' ? to : "0"));
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (peers) meshpost::copy(target.data(), source.data(), Bytes{size});  // opens peer access
    time_each(state, size, [&] {
      if (peers)
        cudaMemcpyPeerAsync(target.data(), number(to), source.data(), number(from), size, stream);
      else cudaMemcpyAsync(target.data(), source.data(), size, cudaMemcpyDefault, stream);
      cudaStreamSynchronize(stream);
    });
    cudaStreamDestroy(stream);
    return;
  }
#endif
  u64 const threads = std::clamp<u64>(std::thread::hardware_concurrency(), 1, 16);
  time_each(state, size, [&] {
    std::vector<std::thread> team;
    u64 const slice = (size + threads - 1) / threads;
    for (u64 begin = 0; begin < size; begin += slice)
      team.emplace_back([&, begin] {
        std::memcpy(target.as<char>() + begin, source.as<char>() + begin,
                    std::min(slice, size - begin));
      });
    for (auto& thread : team) thread.join();
  });
}

// Every device to every other at once, `bytes` each.
void all_to_all(benchmark::State& state) {
  auto const size = static_cast<u64>(state.range(0));
  auto const count = static_cast<u32>(devices().size());
  if (count < 2) {
    state.SkipWithError("there is one device");
    return;
  }
  std::vector<Allocation> kept;
  std::vector<meshpost::Segment> list;
  for (u32 from = 0; from < count; ++from)
    for (u32 to = 0; to < count; ++to) {
      if (from == to) continue;
      kept.push_back(memory(from, size, MemoryKind::device));
      kept.push_back(memory(to, size, MemoryKind::device));
      list.push_back({kept.back().data(), kept[kept.size() - 2].data(), Bytes{size}});
    }
  time_each(state, size * list.size(), [&] { meshpost::copy_batch(list).wait(); });
}

#if defined(__CUDACC__)
// The same by the driver, with a stream for each device. A device begins with its next neighbour.
void all_to_all_floor(benchmark::State& state) {
  auto const size = static_cast<u64>(state.range(0));
  auto const count = static_cast<u32>(devices().size());
  if (!on_gpus() || count < 2) return state.SkipWithError("there are no two GPUs");
  auto const number = [](u32 device) { return static_cast<int>(devices()[device]->index()); };
  std::vector<Allocation> sources, targets;
  std::vector<cudaStream_t> streams(count);
  for (u32 i = 0; i < count; ++i) {
    sources.push_back(memory(i, size * count, MemoryKind::device));
    targets.push_back(memory(i, size * count, MemoryKind::device));
    cudaSetDevice(number(i));
    cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
  }
  for (u32 i = 0; i < count; ++i)  // opens peer access
    for (u32 j = 0; j < count; ++j)
      if (i != j) meshpost::copy(targets[j].data(), sources[i].data(), Bytes{8});
  time_each(state, size * count * (count - 1), [&] {
    for (u32 round = 1; round < count; ++round)
      for (u32 i = 0; i < count; ++i) {
        u32 const to = (i + round) % count;
        cudaMemcpyPeerAsync(targets[to].as<char>() + i * size, number(to),
                            sources[i].as<char>() + to * size, number(i), size, streams[i]);
      }
    for (auto const stream : streams) cudaStreamSynchronize(stream);
  });
  for (auto const stream : streams) cudaStreamDestroy(stream);
}
BENCHMARK(all_to_all_floor)
    ->ArgName("bytes")
    ->Arg(4 * MiB)
    ->Arg(64 * MiB)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
#endif

int const registered = [] {
  for (auto const& [from, to] : {std::pair{"0", "1"},
                                 {"pinned", "0"},
                                 {"0", "pinned"},
                                 {"pageable", "0"},
                                 {"0", "pageable"}})
    for (bool const floor : {false, true}) {
      auto const name = std::string(floor ? "copy_floor" : "copy") + "/" + from + "_to_" + to;
      auto* const one = benchmark::RegisterBenchmark(
          name.c_str(), [=, f = std::string(from), t = std::string(to)](benchmark::State& state) {
            floor ? driver_between(state, f, t) : copy_between(state, f, t);
          });
      for (u64 const size : {64 * KiB, 4 * MiB, 16 * MiB, 256 * MiB, GiB})
        one->Arg(static_cast<meshpost::i64>(size));
      one->ArgName("bytes")->UseManualTime()->Unit(benchmark::kMicrosecond);
    }
  return 0;
}();

BENCHMARK(all_to_all)
    ->ArgName("bytes")
    ->Arg(4 * MiB)
    ->Arg(64 * MiB)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
