#pragma once
// Code that the programs of this folder share: arguments, a clock, and the output of rows. A row is
// one line of JSON, written at once, so that a program that hangs keeps its measurements.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace peer {

using u64 = std::uint64_t;

inline constexpr int latency_threads = 256, rate_threads = 512;  // of a block, as meshpost's
inline constexpr int in_a_row = 64;  // puts in a row, in measurements of their rate

[[noreturn]] inline void fail(char const* what, char const* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(1);
}

inline void check(cudaError_t status, char const* what) {
  if (status != cudaSuccess) fail(what, cudaGetErrorString(status));
}

/// PROGRAM pairs|groups|launches GPUS REPETITIONS BYTES...
struct Arguments {
  bool pairs = false, launches = false;
  int gpus = 0, repetitions = 0;
  std::vector<u64> sizes;

  Arguments(int count, char** words) {
    if (count < 5) fail(words[0], "usage: pairs|groups|launches GPUS REPETITIONS BYTES...");
    pairs = std::string(words[1]) == "pairs";
    launches = std::string(words[1]) == "launches";
    gpus = std::atoi(words[2]);
    repetitions = std::atoi(words[3]);
    for (int i = 4; i < count; ++i) sizes.push_back(std::strtoull(words[i], nullptr, 10));
  }
};

/// Times in us of as many repetitions.
using Times = std::vector<double>;

inline Times repeat(int repetitions, std::function<double()> const& once) {
  Times times;
  for (int i = 0; i < repetitions; ++i) times.push_back(once());
  return times;
}

/// `timed` says exactly what was timed; `blocks` is 0 if the library chooses their number.
struct Row {
  char const* system;
  char const* measure;
  char const* timed;
  int gpus = 2;
  int blocks = 1;
  u64 bytes = 0;
};

inline void begin_row(Row const& row) {
  std::printf("{\"system\": \"%s\", \"measure\": \"%s\", \"timed\": \"%s\", ", row.system,
              row.measure, row.timed);
  std::printf("\"gpus\": %d, \"blocks\": %d, \"bytes\": %llu, ", row.gpus, row.blocks,
              static_cast<unsigned long long>(row.bytes));
}

inline void print(Row const& row, Times const& times) {
  begin_row(row);
  for (std::size_t i = 0; i < times.size(); ++i)
    std::printf("%s%.4f", i == 0 ? "\"us\": [" : ", ", times[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

inline void skip(Row const& row, char const* reason) {
  begin_row(row);
  std::printf("\"skipped\": \"%s\"}\n", reason);
  std::fflush(stdout);
}

inline void version(char const* of, std::string const& number) {
  std::printf("{\"version_of\": \"%s\", \"version\": \"%s\"}\n", of, number.c_str());
  std::fflush(stdout);
}

/// Rounds that make a measurement long enough for the clock and short enough for the user. The same
/// as in bench/rma/put_notify.cpp.
inline u64 rounds_of(u64 bytes, u64 most = 2000) {
  return std::clamp<u64>((u64{64} << 20) / std::max<u64>(bytes, 1), 10, most);
}

inline int multiprocessors() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "multiprocessors");
  return count;
}

/// Time by the host's clock, from the first `once`, which enqueues, to the end of `finish`, which
/// waits.
template <class Once, class Finish>
double host_us(Once&& once, Finish&& finish) {
  auto const begin = std::chrono::steady_clock::now();
  once();
  finish();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

#ifdef __CUDACC__
/// ns, of the GPU that asks.
__device__ inline u64 now() {
  u64 time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}
#endif

}  // namespace peer
