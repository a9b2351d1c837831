// Copies within host memory beside the C library's memcpy, by one thread and by all. The three are
// measured in turn, so that other load of the machine affects all equally.
#include <algorithm>
#include <array>
#include <barrier>
#include <map>
#include <thread>

#include "copy/places.hpp"

namespace {

using namespace bench;

enum Way { by_the_library, by_one_thread, by_all_threads };
struct Round {
  std::array<double, 3> seconds{};
};

// Threads that wait for work, including the caller: their start is not timed.
class Team {
 public:
  explicit Team(u64 count) : meeting_(static_cast<std::ptrdiff_t>(count)), count_(count) {
    for (u64 i = 1; i < count; ++i)
      threads_.emplace_back([this, i] {
        for (;;) {
          meeting_.arrive_and_wait();
          if (over_) return;
          share(i);
          meeting_.arrive_and_wait();
        }
      });
  }
  ~Team() {
    over_ = true;
    meeting_.arrive_and_wait();
    for (auto& thread : threads_) thread.join();
  }
  Team(Team const&) = delete;
  Team& operator=(Team const&) = delete;

  void copy(char* target, char const* source, u64 size) {
    target_ = target, source_ = source, size_ = size;
    meeting_.arrive_and_wait();
    share(0);
    meeting_.arrive_and_wait();
  }

 private:
  void share(u64 i) {
    u64 const from = size_ * i / count_, to = size_ * (i + 1) / count_;
    std::memcpy(target_ + from, source_ + from, to - from);
  }

  std::barrier<> meeting_;
  u64 const count_;
  char* target_ = nullptr;
  char const* source_ = nullptr;
  u64 size_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

std::vector<Round> const& rounds_of(u64 size) {
  static std::map<u64, std::vector<Round>> known;
  auto& rounds = known[size];
  if (!rounds.empty()) return rounds;
  auto const source = memory(0, size, MemoryKind::pageable);
  auto const target = memory(0, size, MemoryKind::pageable);
  Team team(std::clamp<u64>(std::thread::hardware_concurrency(), 1, 16));
  auto const time = [&](auto const& work) {
    double const begin = now();
    work();
    return now() - begin;
  };
  u64 const count = size >= 256 * MiB ? 11 : 41;
  for (u64 i = 0; i <= count; ++i) {
    Round round;
    auto const take = [&](Way way) {
      if (way == by_the_library)
        round.seconds[way] =
            time([&] { meshpost::copy(target.data(), source.data(), Bytes{size}); });
      if (way == by_one_thread)
        round.seconds[way] = time([&] { std::memcpy(target.data(), source.data(), size); });
      if (way == by_all_threads)
        round.seconds[way] =
            time([&] { team.copy(target.as<char>(), source.as<char const>(), size); });
    };
    for (u64 k = 0; k < 3; ++k)
      take(static_cast<Way>((i + k) % 3));  // each comes first equally often
    if (i > 0) rounds.push_back(round);
  }
  return rounds;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void within_host(benchmark::State& state, Way way) {
  auto const size = static_cast<u64>(state.range(0));
  // The library measures the machine after the first copies of a process. This happens here, before
  // anything is timed.
  static bool const warm = [] {
    auto const source = memory(0, 64 * MiB, MemoryKind::pageable);
    auto const target = memory(0, 64 * MiB, MemoryKind::pageable);
    for (int i = 0; i < 2; ++i) meshpost::copy(target.data(), source.data(), Bytes{64 * MiB});
    return true;
  }();
  auto const& rounds = rounds_of(size);
  std::vector<double> times, ratios;
  for (auto const& [seconds] : rounds) {
    times.push_back(seconds[way]);
    ratios.push_back(std::min(seconds[by_one_thread], seconds[by_all_threads]) / seconds[way]);
  }
  for (auto _ : state) state.SetIterationTime(median(times));
  state.SetBytesProcessed(static_cast<meshpost::i64>(size) * warm);
  // Relative to the better of the two memcpys, pair by pair.
  state.counters["of_better"] = median(ratios);
}

int const host_registered = [] {
  for (auto const& [name, way] : {std::pair{"host_copy", by_the_library},
                                  {"host_memcpy_one_thread", by_one_thread},
                                  {"host_memcpy_all_threads", by_all_threads}}) {
    auto* const one = benchmark::RegisterBenchmark(
        name, [w = way](benchmark::State& state) { within_host(state, w); });
    for (u64 const size : {MiB, 4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB, GiB})
      one->Arg(static_cast<meshpost::i64>(size));
    one->ArgName("bytes")->Iterations(1)->UseManualTime()->Unit(benchmark::kMicrosecond);
  }
  return 0;
}();

}  // namespace
