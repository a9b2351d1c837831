// Host time to start an 8-byte copy, and of the driver's own call. Many copies are started. The
// wait for them is not timed.
#include "copy/places.hpp"

namespace {

using namespace bench;

constexpr u64 many = 512;
constexpr int rounds = 50;  // the untimed waits between them are far longer than the timed part

// The two ends of `many` copies of 8 bytes, from the first device to the second, if there is one.
struct Ends {
  std::vector<void*> sources, targets;
};

template <class Start, class Wait>
void time_starts(benchmark::State& state, Ends const& ends, Start&& start, Wait&& wait) {
  for (u64 i = 0; i < many; ++i) start(ends.targets[i], ends.sources[i]);
  wait();
  for (auto _ : state) {
    double const begin = now();
    for (u64 i = 0; i < many; ++i) start(ends.targets[i], ends.sources[i]);
    state.SetIterationTime((now() - begin) / many);
    wait();
  }
}

u32 second() { return devices().size() > 1 ? 1 : 0; }

Ends ends_in(void* sources, void* targets) {
  Ends ends;
  for (u64 i = 0; i < many; ++i) {
    ends.sources.push_back(static_cast<char*>(sources) + 64 * i);
    ends.targets.push_back(static_cast<char*>(targets) + 64 * i);
  }
  return ends;
}

void start_copies(benchmark::State& state, Ends const& ends) {
  std::vector<meshpost::Copy> under_way;
  under_way.reserve(many);
  time_starts(
      state, ends,
      [&](void* target, void* source) {
        under_way.push_back(meshpost::copy_async(target, source, Bytes{8}));
      },
      [&] { under_way.clear(); });
}

void start_8_bytes_known(benchmark::State& state) {
  auto const source = memory(0, 64 * many, MemoryKind::device);
  auto const target = memory(second(), 64 * many, MemoryKind::device);
  start_copies(state, ends_in(source.data(), target.data()));
}
BENCHMARK(start_8_bytes_known)->UseManualTime()->Iterations(rounds);

void start_8_bytes_pageable(benchmark::State& state) {
  std::vector<char> source(64 * many, 1);
  auto const target = memory(0, 64 * many, MemoryKind::device);
  start_copies(state, ends_in(source.data(), target.data()));
}
BENCHMARK(start_8_bytes_pageable)->UseManualTime()->Iterations(rounds);

#if defined(__CUDACC__)
int number(u32 device) { return static_cast<int>(devices()[device]->index()); }

void* foreign(u32 device, u64 size) {
  void* data = nullptr;
  cudaSetDevice(number(device));
  cudaMalloc(&data, size);
  return data;
}

// Memory that the library did not allocate but has seen.
void start_8_bytes_foreign(benchmark::State& state) {
  if (!on_gpus()) return state.SkipWithError("CPU devices have no memory of others");
  void *const source = foreign(0, 64 * many), *const target = foreign(second(), 64 * many);
  start_copies(state, ends_in(source, target));
  cudaFree(source), cudaFree(target);
}
BENCHMARK(start_8_bytes_foreign)->UseManualTime()->Iterations(rounds);

// Each copy uses two allocations that the library has never seen.
void start_8_bytes_never_seen(benchmark::State& state) {
  if (!on_gpus()) return state.SkipWithError("CPU devices have no memory of others");
  for (auto _ : state) {
    Ends ends;
    for (u64 i = 0; i < many; ++i) {
      ends.sources.push_back(foreign(0, 8));
      ends.targets.push_back(foreign(second(), 8));
    }
    std::vector<meshpost::Copy> under_way;
    under_way.reserve(many);
    double const begin = now();
    for (u64 i = 0; i < many; ++i)
      under_way.push_back(meshpost::copy_async(ends.targets[i], ends.sources[i], Bytes{8}));
    state.SetIterationTime((now() - begin) / many);
    under_way.clear();
    for (auto* const one : ends.sources) cudaFree(one);
    for (auto* const one : ends.targets) cudaFree(one);
  }
}
BENCHMARK(start_8_bytes_never_seen)->UseManualTime()->Iterations(rounds);

void start_8_bytes_floor(benchmark::State& state) {
  if (!on_gpus()) return state.SkipWithError("the floor on CPU devices is a memcpy");
  auto const source = memory(0, 64 * many, MemoryKind::device);
  auto const target = memory(second(), 64 * many, MemoryKind::device);
  meshpost::copy(target.data(), source.data(), Bytes{8});  // opens peer access
  cudaStream_t stream = nullptr;
  cudaSetDevice(number(0));
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  time_starts(
      state, ends_in(source.data(), target.data()),
      [&](void* to, void* from) {
        cudaMemcpyPeerAsync(to, number(second()), from, number(0), 8, stream);
      },
      [&] { cudaStreamSynchronize(stream); });
  cudaStreamDestroy(stream);
}
BENCHMARK(start_8_bytes_floor)->UseManualTime()->Iterations(rounds);
#endif

}  // namespace
