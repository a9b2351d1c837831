// Streams of two processes that send to each other, and a host that writes to a window of the other
// process. Both processes run them side by side (rma/processes.cpp). All operations lie on the
// streams before the first begins.
#include <benchmark/benchmark.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "worlds.hpp"

namespace {

using namespace meshpost;

constexpr u64 longest = u64{16} << 20;

struct Meet {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

// This process's end.
struct End {
  u32 const mine = bench::process(), other = 1 - mine;
  World world{{.devices = bench::own_device(), .ranks = 1}};
  Window<char> box = world.window<char>(longest, Tags{2}, "box");
  MessageWindow mail{world, {.tags = 1}};
  StreamEndpoint stream{world, 0, "mine"};
  StreamId there{other, stream.id().number};
  Allocation memory = world.devices()[0]->allocate(Bytes{longest}, MemoryKind::device);

  void put(u64 bytes) {
    stream.put_notify(box.at(RankId{other}), std::span<char const>(memory.as<char>(), bytes), there,
                      Tag{0});
  }
  void send(u64 bytes) {
    stream.send(mail, there, std::span<char const>(memory.as<char>(), bytes), Tag{0});
  }
  void receive(u64 bytes) {
    stream.receive(mail, there, std::span<char>(memory.as<char>(), bytes), Tag{0});
  }
  /// us one way. Both streams are full when the first begins.
  template <class Out, class In>
  double one_way(u32 trips, Out&& out, In&& in) {
    stream.wait(box, Tag{1});
    for (u32 i = 0; i < trips; ++i) {
      if (mine == 1) in();
      out();
      if (mine == 0) in();
    }
    world.run(Meet{});
    auto const begin = std::chrono::steady_clock::now();
    box.notify(stream.id(), Tag{1});
    stream.synchronize();
    return bench::microseconds(begin) / (2 * trips);
  }
};

u32 trips(u64 bytes) { return bytes > (u64{1} << 20) ? 20 : 50; }

template <class Once>
void measure(benchmark::State& state, u64 bytes, Once&& once) {
  End end;
  end.world.devices()[0]->fill(end.memory.data(), 1, Bytes{longest});
  once(end);
  for (auto _ : state) state.SetIterationTime(once(end) * 1e-6);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void put_between(benchmark::State& state, u64 bytes) {
  measure(state, bytes, [&](End& end) {
    return end.one_way(
        trips(bytes), [&] { end.put(bytes); }, [&] { end.stream.wait(end.box, Tag{0}); });
  });
}

void message_between(benchmark::State& state, u64 bytes) {
  measure(state, bytes, [&](End& end) {
    return end.one_way(trips(bytes), [&] { end.send(bytes); }, [&] { end.receive(bytes); });
  });
}

// The call returns when the bytes are there.
void host_write_between(benchmark::State& state, u64 bytes) {
  measure(state, bytes, [&](End& end) {
    std::vector<char> const source(bytes);
    u32 const times = trips(bytes);
    auto const begin = std::chrono::steady_clock::now();
    for (u32 i = 0; end.mine == 0 && i < times; ++i)
      end.box.write(RankId{1}, 0, std::span<char const>(source));
    double const each = bench::microseconds(begin) / times;
    end.world.run(Meet{});
    return each;
  });
}

}  // namespace

void bench::add_streams_between_processes() {
  struct Named {
    std::string name;
    void (*measure)(benchmark::State& state, u64 bytes);
  };
  for (auto const& [name, measure] : {Named{"stream_put_notify_between", put_between},
                                      Named{"stream_message_between", message_between},
                                      Named{"host_write_between", host_write_between}})
    for (u64 const bytes : {u64{8}, u64{64} << 10, u64{1} << 20, longest})
      benchmark::RegisterBenchmark((name + "/two_processes/bytes:" + std::to_string(bytes)).c_str(),
                                   measure, bytes)
          ->Iterations(5)
          ->UseManualTime();
}
