// The engine alone between two processes, which act as two nodes: a floor for ranks there. Each
// process polls, and nothing else runs. Memory is that of GPUs if the engine reaches it.
#include <benchmark/benchmark.h>

#include <chrono>
#include <optional>

#include "world/join_engine.hpp"
#include "worlds.hpp"

namespace bench {
namespace {

using namespace meshpost;

struct Counts : net::Events {
  u64 messages = 0, data = 0, done = 0;
  void on_message(u32, std::span<char const>) override { ++messages; }
  void on_data(u32, u32) override { ++data; }
  void on_done(u64) override { ++done; }
  void on_lost(u32 peer, std::string const& why) override {
    throw Error(Kind::peer_lost, "benchmark of an engine",
                "process " + std::to_string(peer) + ": " + why, "start it again");
  }
};

enum class Where { host, pinned, gpu };

class Between {
 public:
  /// `region`: bytes at each end. Each write goes to the next place in it. A small region stays in
  /// a core's own cache. Data that a copy engine has just written do not.
  Between(Where where, u64 region)
      : group_(Processes::of_job(), channel()), other_(1 - group_.number()) {
    engine_ = join_engine(group_, "benchmark", Config::from_environment().net,
                          where == Where::gpu ? net::Gpus::if_faster : net::Gpus::no,
                          [this](u32 process) { return process == other_; });
    bool const reached = where != Where::gpu || engine_->reaches("cuda");
    for (auto const& one : group_.exchange("benchmark", reached ? "y" : "n"))
      reached_ &= one == "y";
    if (!reached_) return;
    Bytes const size{2 * region};
    auto const device =
        where == Where::host
            ? open_devices("cpu:1").front()
            : open_devices("cuda:" + std::to_string(group_.number() % device_count())).front();
    memory_ = device->allocate(size, where == Where::gpu      ? MemoryKind::device
                                     : where == Where::pinned ? MemoryKind::pinned
                                                              : MemoryKind::pageable);
    device->fill(memory_.data(), 1, size);
    auto const mine = where == Where::gpu ? engine_->expose_device(memory_.data(), size,
                                                                   device->kind(), device->index())
                                          : engine_->expose(memory_.data(), size);
    theirs_ = engine_->import(other_, group_.exchange("benchmark", mine)[other_]);
  }
  ~Between() { group_.exchange("end of the benchmark"); }
  Between(Between const&) = delete;
  Between& operator=(Between const&) = delete;

  bool reached() const { return reached_; }
  std::string name() const { return engine_->name(); }

  /// Seconds one way: a write with data, answered by another.
  double write(u64 bytes, u32 rounds) {
    return measure(rounds, [&] { start_write(bytes); }, [this] { return seen_.data; }) / rounds / 2;
  }
  /// The same with messages.
  double message(u64 bytes, u32 rounds) {
    auto const start = [&] {
      while (!engine_->send(other_, {memory_.as<char>(), bytes}, {}, 0)) engine_->poll(seen_);
    };
    return measure(rounds, start, [this] { return seen_.messages; }) / rounds / 2;
  }

 private:
  // A different one in each Between, and far from those of Worlds and of JobMemory.
  static u32 channel() {
    static u32 made = 0;
    return (u32{1} << 30) + made++;
  }
  void start_write(u64 bytes) {
    u64 const half = memory_.size() / 2;
    next_ = next_ + bytes > half - bytes ? 0 : next_ + bytes;
    while (
        !engine_->write(other_, {memory_.as<char>() + next_, bytes}, theirs_, half + next_, 1, 0))
      engine_->poll(seen_);
  }
  template <class Start, class Seen>
  double measure(u32 rounds, Start const& start, Seen const& seen) {
    group_.exchange("a benchmark's beginning");
    auto const begin = std::chrono::steady_clock::now();
    for (u32 round = 0; round < rounds; ++round) {
      u64 const before = seen();
      if (group_.number() == 0) start();
      while (seen() == before) engine_->poll(seen_);
      if (group_.number() != 0) start();
    }
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;
    // Started operations must end.
    auto const until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (std::chrono::steady_clock::now() < until) engine_->poll(seen_);
    return took.count();
  }

  ProcessGroup group_;
  u32 other_;
  Allocation memory_;
  std::unique_ptr<net::Engine> engine_;
  net::RemoteMemory theirs_;
  bool reached_ = true;
  u64 next_ = 0;
  Counts seen_;
};

constexpr u64 usual_region = u64{1} << 20;

void one_way(benchmark::State& state, Where where, u64 region, bool message, u64 bytes) {
  Between between(where, region);
  if (!between.reached()) return state.SkipWithError("its memory is not reached");
  auto const rounds = static_cast<u32>(std::clamp<u64>((u64{64} << 20) / bytes, 10, 1000));
  message ? between.message(bytes, rounds / 10 + 1) : between.write(bytes, rounds / 10 + 1);
  for (auto _ : state)
    state.SetIterationTime(message ? between.message(bytes, rounds) : between.write(bytes, rounds));
  state.SetLabel(between.name());
}

}  // namespace

void add_engine_between_processes() {
  if (processes() != 2) return;
  auto const add = [](std::string const& name, auto... what) {
    benchmark::RegisterBenchmark(name.c_str(), one_way, what...)->Iterations(1)->UseManualTime();
  };
  add("engine_between/message/bytes:8", Where::host, usual_region, true, 8);
  auto const add_writes = [&](std::string const& name, Where where, u64 region) {
    for (u64 const bytes : {8, 64 << 10, 256 << 10, 512 << 10, 1 << 20})
      add("engine_between/write/" + name + "/bytes:" + std::to_string(bytes), where, region, false,
          bytes);
  };
  add_writes("host", Where::host, usual_region);
  add_writes("host_of_16_MiB", Where::host, u64{16} << 20);
  add_writes("host_of_128_MiB", Where::host, u64{128} << 20);
  if (kind() != "cuda") return;
  add_writes("pinned", Where::pinned, usual_region);
  add_writes("gpu", Where::gpu, usual_region);
}

}  // namespace bench
