// Two engines of one host that communicate over the loopback of its network, each polled by a
// thread. MESHPOST_BENCH_ENGINE chooses the engine.
#include "net/engine.hpp"

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace bench {
namespace {

using meshpost::u32;
using meshpost::u64;
using namespace meshpost::net;

struct Counts : Events {
  u64 messages = 0, data = 0, done = 0;
  void on_message(u32, std::span<char const>) override { ++messages; }
  void on_data(u32, u32) override { ++data; }
  void on_done(u64) override { ++done; }
  void on_lost(u32, std::string const& why) override {
    std::fprintf(stderr, "%s\n", why.c_str()), std::abort();
  }
};

struct Side {
  std::unique_ptr<Engine> engine;
  std::vector<char> memory;
  RemoteMemory other;
  Counts seen;

  void send(u64 size) {
    while (!engine->send(0, {}, {memory.data(), size}, 0)) engine->poll(seen);
  }
  void write(u64 size) {
    while (!engine->write(0, {memory.data(), size}, other, memory.size() / 2, 1, 0))
      engine->poll(seen);
  }
  template <class Holds>
  void until(Holds const& holds) {
    while (!holds()) engine->poll(seen);
  }
};

// Side 1 is another thread, which repeats `body` until it is told to stop.
class Pair {
 public:
  explicit Pair(std::function<void(Side&)> const& body) {
    auto const* const named = std::getenv("MESHPOST_BENCH_ENGINE");
    std::string exposed[2];
    for (int i : {0, 1}) {
      sides_[i].engine = make_engine(named ? named : "ofi", "");
      sides_[i].memory.resize(u64{2} << 20);
      exposed[i] = sides_[i].engine->expose(sides_[i].memory.data(),
                                            meshpost::Bytes{sides_[i].memory.size()});
    }
    for (int i : {0, 1}) {
      sides_[i].engine->connect({sides_[1 - i].engine->address()});
      sides_[i].other = sides_[i].engine->import(0, exposed[1 - i]);
    }
    thread_ = std::jthread([this, body](std::stop_token const& stop) {
      while (!stop.stop_requested()) {
        sides_[1].engine->poll(sides_[1].seen);
        body(sides_[1]);
      }
    });
  }
  ~Pair() {
    thread_.request_stop();
    thread_.join();
  }
  Pair(Pair const&) = delete;
  Pair& operator=(Pair const&) = delete;
  Side* operator->() { return &sides_[0]; }

 private:
  Side sides_[2];
  std::jthread thread_;
};

// One iteration is a round trip; the time given is that of one way.
template <class There>
void half_round_trips(benchmark::State& state, Pair& pair, There const& there_and_back) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 1000; ++i) there_and_back();
  for (auto _ : state) {
    auto const begin = Clock::now();
    there_and_back();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count() / 2);
  }
  state.SetLabel(pair->engine->name());
}

void engine_message(benchmark::State& state) {
  u64 const size = static_cast<u64>(state.range(0));
  Pair pair([size, answered = u64{0}](Side& side) mutable {
    for (; answered < side.seen.messages; ++answered) side.send(size);
  });
  half_round_trips(state, pair, [&] {
    auto const before = pair->seen.messages;
    pair->send(size);
    pair->until([&] { return pair->seen.messages > before; });
  });
}
BENCHMARK(engine_message)->ArgName("bytes")->Arg(8)->Arg(4096)->UseManualTime();

void engine_write(benchmark::State& state) {
  u64 const size = static_cast<u64>(state.range(0));
  Pair pair([size, answered = u64{0}](Side& side) mutable {
    for (; answered < side.seen.data; ++answered) side.write(size);
  });
  half_round_trips(state, pair, [&] {
    auto const before = pair->seen.data;
    pair->write(size);
    pair->until([&] { return pair->seen.data > before; });
  });
}
BENCHMARK(engine_write)->ArgName("bytes")->Arg(8)->Arg(1 << 20)->UseManualTime();

// Writes in a row, at most 64 in flight. One iteration is 256 writes and an answer.
void engine_stream(benchmark::State& state) {
  constexpr u64 writes = 256;
  u64 const size = static_cast<u64>(state.range(0));
  Pair pair([answered = u64{0}](Side& side) mutable {
    for (; answered + writes <= side.seen.data; answered += writes) side.send(0);
  });
  u64 started = 0;
  for (auto _ : state) {
    auto const before = pair->seen.messages;
    for (u64 i = 0; i < writes; ++i) {
      pair->until([&] { return started - pair->seen.done < 64; });
      pair->write(size);
      ++started;
    }
    pair->until([&] { return pair->seen.messages > before; });
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(writes * size));
  state.SetLabel(pair->engine->name());
}
BENCHMARK(engine_stream)->ArgName("bytes")->Arg(8)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace bench
