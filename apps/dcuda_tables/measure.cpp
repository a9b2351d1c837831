#include "measure.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>

#include "kernels.hpp"

namespace dcuda_tables {

using namespace meshpost;

namespace {

using Clock = std::chrono::steady_clock;
constexpr u64 seldom = 4096;  // polls between two looks at the clock

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool on_gpus(World const& world) { return !world.devices().front()->in_host_memory(); }

u32 rounds_of(World const& world, Options const& options) {
  if (options.rounds > 0) return options.rounds;
  return on_gpus(world) ? 10'000 : 200;
}

// So many that all pairs together send this much in a repetition.
u32 rounds_of(World const& world, Options const& options, u64 bytes, u32 pairs) {
  u64 const budget = u64{on_gpus(world) ? 1024u : 32u} << 20;
  u64 const most = rounds_of(world, options);
  return static_cast<u32>(std::clamp<u64>(budget / (bytes * pairs), std::min<u64>(3, most), most));
}

void check_places(World const& world, Options const& options) {
  char const* const operation = "dcuda_tables";
  if (options.mpi && world.processes() != 2)  // alone it would measure one device
    throw Error(Kind::bad_argument, "--mpi",
                "started in " + std::to_string(world.processes()) + " processes, not in two",
                "start it by mpirun -n 2");
  if (world.processes() > 2)
    throw Error(
        Kind::bad_argument, operation,
        "started in " + std::to_string(world.processes()) + " processes; it measures between two",
        "start it in one or two");
  if (world.devices().size() != 1)
    throw Error(Kind::bad_argument, operation,
                std::to_string(world.devices().size()) + " devices; each process has one",
                "name one by --devices");
  if (world.size() % 2 != 0)
    throw Error(Kind::bad_argument, "--ranks " + std::to_string(world.ranks_per_device()),
                "they form no pairs on one device", "choose an even number");
}

/// The windows and runs of all measurements.
class Between {
 public:
  Between(World& world, Options const& options, u64 largest)
      : world_(world),
        options_(options),
        data_(world.window<char>(bench::outgoing(largest) + largest, Tags{1}, "messages")),
        elapsed_(world.window<u64>(1, Tags{1}, "elapsed")) {}

  /// One way.
  Timed ping_pong(u64 bytes) {
    Timed timed{bytes, 1, rounds_of(world_, options_), {}};
    repeat(timed, bench::PingPong{data_, elapsed_, bytes, 1, warm_up(timed), timed.rounds}, 2);
    return timed;
  }
  Timed acknowledged(u64 bytes, u32 pairs) {
    Timed timed{bytes, pairs, rounds_of(world_, options_, bytes, pairs), {}};
    repeat(timed, Acknowledged{data_, elapsed_, bytes, pairs, warm_up(timed), timed.rounds}, 1);
    return timed;
  }

  /// All pairs exchange known bytes, both kernels in turn. Returns how many of this process's are
  /// wrong.
  u64 check(u64 bytes) {
    u32 const half = world_.size() / 2;
    fill(bytes);
    world_.run(bench::PingPong{data_, elapsed_, bytes, half, 0, 2});
    u64 wrong = differing(bytes, [&](u32 rank) { return rank < half ? rank + half : rank - half; });
    fill(bytes);
    world_.run(Acknowledged{data_, elapsed_, bytes, half, 0, 2});
    return wrong + differing(bytes, [&](u32 rank) { return rank < half ? none : rank - half; });
  }

 private:
  static constexpr u32 none = ~u32{0};  // nobody sends to this rank
  static char byte(u32 rank, u64 place) { return static_cast<char>(1 + (rank * 31 + place) % 127); }
  static u32 warm_up(Timed const& timed) { return timed.rounds / 10 + 1; }

  template <class Kernel>
  void repeat(Timed& timed, Kernel const& kernel, u32 messages_a_round) {
    for (u32 i = 0; i <= options_.repetitions; ++i) {
      world_.run(kernel);
      if (i == 0 || world_.process() != 0) continue;  // the first one touches memory
      double const ns = static_cast<double>(bench::slowest(elapsed_, timed.pairs));
      timed.seconds.add(ns * 1e-9 / timed.rounds / messages_a_round);
    }
  }
  template <class Work>
  void for_own_ranks(Work const& work) {
    for (u32 i = 0; i < world_.ranks_per_device(); ++i) work(world_.first_rank() + i);
  }
  void fill(u64 bytes) {
    std::vector<char> part(bench::outgoing(bytes) + bytes);
    for_own_ranks([&](u32 rank) {
      for (u64 i = 0; i < bytes; ++i) part[bench::outgoing(bytes) + i] = byte(rank, i);
      data_.write(RankId{rank}, 0, std::span<char const>(part));
    });
  }
  template <class Sender>
  u64 differing(u64 bytes, Sender const& sender_of) {
    u64 wrong = 0;
    std::vector<char> part(bytes);
    for_own_ranks([&](u32 rank) {
      data_.read(RankId{rank}, 0, std::span(part));
      u32 const sender = sender_of(rank);
      for (u64 i = 0; i < bytes; ++i) wrong += part[i] != (sender == none ? 0 : byte(sender, i));
    });
    return wrong;
  }

  World& world_;
  Options const& options_;
  Window<char> data_;
  Window<u64> elapsed_;
};

// Seconds of a round trip: the host sets a word of pinned memory, the rank sets it back.
double by_flag(World& world, u32 rounds) {
  auto const memory = world.devices().front()->allocate(Bytes{sizeof(u32)}, MemoryKind::pinned);
  auto const failed = world.window<u32>(1, Tags{1}, "failed");
  *memory.as<u32>() = 0;
  std::atomic_ref flag(*memory.as<u32>());
  Launch how;
  how.with_host = true;
  auto run = world.launch(ResetFlag{memory.as<u32>(), failed, rounds}, how);
  bool late = false;
  auto begin = Clock::now();
  for (u32 i = 0; i < rounds && !late; ++i) {
    if (i == rounds / 10) begin = Clock::now();  // the kernel has begun, and is warm
    flag.store(1);
    Clock::time_point since;
    for (u64 polls = 1; flag.load() != 0 && !late; ++polls) {
      if (polls == seldom) since = Clock::now();
      else if (polls % seldom == 0) late = seconds_since(since) > 10;
    }
  }
  double const took = seconds_since(begin);
  run.wait();
  late = late || failed.read(RankId{0})[0] != 0;
  world.free(failed);
  if (late)
    throw Error(Kind::deadline, "round trip between host and device by a flag",
                "a round took over 10 s", "see if another program uses all cores, or the device");
  u32 const timed = rounds - rounds / 10;
  return took / timed;
}

// The same by notifications.
double by_notifications(World& world, u32 rounds) {
  auto const box = world.window<u32>(1, Tags{2}, "host and rank");
  Launch how;
  how.with_host = true;
  auto run = world.launch(AnswerHost{box, world.host(), rounds}, how);
  auto begin = Clock::now();
  for (u32 i = 0; i < rounds; ++i) {
    if (i == rounds / 10) begin = Clock::now();
    box.notify(RankId{0}, Tag{0});
    box.wait(Tag{1});
  }
  double const took = seconds_since(begin);
  run.wait();
  world.free(box);
  u32 const timed = rounds - rounds / 10;
  return took / timed;
}

}  // namespace

Measured measure(World& world, Options const& options) {
  check_places(world, options);
  u64 const largest = std::ranges::max(options.sizes);
  u32 const rounds = rounds_of(world, options);
  u32 const half = world.size() / 2;
  Measured measured;
  Between between(world, options, std::max<u64>(largest, 4));
  if (options.check) {
    measured.wrong = between.check(4);
    for (u64 const bytes : options.sizes) measured.wrong += between.check(bytes);
  }
  measured.notify = between.ping_pong(0);
  measured.access = between.ping_pong(4);  // as in the thesis
  for (u32 const pairs : {1u, half}) {
    for (u64 const bytes : options.sizes)
      measured.bandwidth.push_back(between.acknowledged(bytes, pairs));
    if (half == 1) break;
  }
  if (world.processes() > 1) return measured;
  for (auto* const trip : {by_flag, by_notifications}) {
    Timed timed{0, 1, rounds, {}};
    for (u32 i = 0; i <= options.repetitions; ++i) {
      double const seconds = trip(world, rounds);
      if (i > 0) timed.seconds.add(seconds);
    }
    measured.host.push_back(timed);
  }
  return measured;
}

}  // namespace dcuda_tables
