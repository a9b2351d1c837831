#pragma once
#include <benchmark/benchmark.h>
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <cstring>
#include <vector>

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>
#endif

// Code that benchmarks of copies share: devices, touched memory, timing.

namespace bench {

using meshpost::Allocation;
using meshpost::Bytes;
using meshpost::MemoryKind;
using meshpost::u32;
using meshpost::u64;

constexpr u64 KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

inline std::vector<std::shared_ptr<meshpost::Device>> const& devices() {
  static auto const all = meshpost::open_devices(meshpost::Config::from_environment().devices);
  return all;
}
inline bool on_gpus() { return devices().front()->kind() == "cuda"; }

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Memory that was written, so that its pages are there.
inline Allocation memory(u32 device, u64 size, MemoryKind kind) {
  auto one = devices()[device]->allocate(Bytes{size}, kind);
  if (kind == MemoryKind::device) devices()[device]->fill(one.data(), 1, Bytes{size});
  else std::memset(one.data(), 1, size);
  return one;
}

/// Times each call of `work`, after one untimed call. A call moves `bytes`.
template <class Work>
void time_each(benchmark::State& state, u64 bytes, Work&& work) try {
  work();
  for (auto _ : state) {
    double const begin = now();
    work();
    state.SetIterationTime(now() - begin);
  }
  state.SetBytesProcessed(static_cast<meshpost::i64>(state.iterations() * bytes));
} catch (meshpost::Error const& error) {
  state.SkipWithError(error.what());
}

}  // namespace bench
