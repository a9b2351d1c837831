// A step of a halo exchange on the streams of two devices, by a plan: they need `bytes` of each
// other. Once the elements lie side by side, and once every second place is needed. Beside it the
// same bytes both ways by bare put_notify and wait, which pack nothing and unpack nothing. All
// operations lie on the streams before the first begins, so the host's speed does not count; its
// time for a step of a device is measured alone.
#include <benchmark/benchmark.h>

#include <chrono>
#include <numeric>

#include "worlds.hpp"

namespace {

using namespace meshpost;
using bench::microseconds;

constexpr u32 few_steps = 10, many_steps = 110;  // the difference has no begin and no end
constexpr u32 alternating = 2;                   // one of two elements is needed

class ExchangingStreams {
 public:
  // `stride`: of the elements that are needed.
  ExchangingStreams(u64 bytes, u64 stride) : count_(bytes / sizeof(double)) {
    u64 const own = stride * count_;
    std::vector<std::vector<u64>> needs(2);
    for (u32 part = 0; part < 2; ++part)
      for (u64 i = 0; i < count_; ++i) needs[part].push_back((1 - part) * own + i * stride);
    auto const plan = Plan::from_indices(Distribution::block(2 * own, 2), needs);
    exchange_ = StreamExchange<double>(*world_, plan, {streams_[0], streams_[1]});
    box_ = world_->window<double>(2 * count_, Tags{3}, "box");
    for (auto const& device : world_->devices()) {
      x_.push_back(device->allocate(Bytes{(own + count_) * sizeof(double)}, MemoryKind::device));
      device->fill(x_.back().data(), 0, x_.back().size());
    }
  }
  ~ExchangingStreams() {
    free_exchange(*world_, exchange_);
    world_->free(box_);
  }
  ExchangingStreams(ExchangingStreams const&) = delete;
  ExchangingStreams& operator=(ExchangingStreams const&) = delete;

  void exchange(u32 device) {
    exchange_.start(device, x_[device].as<double>());
    exchange_.finish(device, x_[device].as<double>());
  }
  void put(u32 device, u32 step) {
    std::span<double const> const source(x_[device].as<double>(), count_);
    streams_[device].put_notify(box_.at(RankId{1 - device}, step % 2 * count_), source,
                                streams_[1 - device].id(), Tag{step % 2});
    streams_[device].wait(box_, Tag{step % 2});
  }
  /// Microseconds until `steps` steps are done that were queued before.
  template <class Step>
  double time_of(u32 steps, Step const& step) {
    hold();
    for (u32 i = 0; i < steps; ++i)
      for (u32 device = 0; device < 2; ++device) step(device, i);
    auto const begin = std::chrono::steady_clock::now();
    release();
    return microseconds(begin);
  }
  /// Of the host, to queue a step of one device.
  template <class Step>
  double host_time_of(Step const& step) {
    hold();
    auto const begin = std::chrono::steady_clock::now();
    for (u32 i = 0; i < many_steps; ++i)
      for (u32 device = 0; device < 2; ++device) step(device, i);
    double const time = microseconds(begin) / (2 * many_steps);
    release();
    return time;
  }

 private:
  void hold() {
    for (auto& stream : streams_) stream.wait(box_, Tag{2});
  }
  void release() {
    for (auto& stream : streams_) box_.notify(stream.id(), Tag{2});
    for (auto& stream : streams_) stream.synchronize();
  }

  u64 count_;
  std::shared_ptr<World> world_ = bench::world(2, 1);
  StreamEndpoint streams_[2] = {StreamEndpoint(*world_, 0), StreamEndpoint(*world_, 1)};
  StreamExchange<double> exchange_;
  Window<double> box_;
  std::vector<Allocation> x_;
};

template <class Step>
void time_step(benchmark::State& state, u64 stride, Step const& step_of) {
  if (bench::device_count() < 2) return state.SkipWithError("needs two devices");
  ExchangingStreams both(static_cast<u64>(state.range(0)), stride);
  auto const step = [&](u32 device, u32 i) { step_of(both, device, i); };
  both.time_of(few_steps, step);
  for (auto _ : state) {
    double const before = both.time_of(few_steps, step), all = both.time_of(many_steps, step);
    state.SetIterationTime((all - before) / (many_steps - few_steps) * 1e-6);
  }
  state.counters["host_us"] = both.host_time_of(step);
}

void stream_exchange(benchmark::State& state) {
  time_step(state, 1, [](ExchangingStreams& both, u32 device, u32) { both.exchange(device); });
}
void stream_exchange_of_places(benchmark::State& state) {
  time_step(state, alternating,
            [](ExchangingStreams& both, u32 device, u32) { both.exchange(device); });
}
void stream_exchange_by_puts(benchmark::State& state) {
  time_step(state, 1, [](ExchangingStreams& both, u32 device, u32 i) { both.put(device, i); });
}

void sizes_of_halos(benchmark::internal::Benchmark* made) {
  made->ArgName("bytes")->Arg(64)->Arg(8192)->Arg(65536)->Arg(1 << 20)->UseManualTime();
  made->Iterations(10);
}
BENCHMARK(stream_exchange)->Apply(sizes_of_halos);
BENCHMARK(stream_exchange_of_places)->Apply(sizes_of_halos);
BENCHMARK(stream_exchange_by_puts)->Apply(sizes_of_halos);

}  // namespace
