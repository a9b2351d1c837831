// Random programs against a sequential oracle: puts of random sizes to random ranks at random
// places, counted by pair, in several windows. MESHPOST_TEST_SEED repeats one.
#include <algorithm>
#include <random>

#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

// What a rank does, one after the other. Every rank's program is drawn on the host and read by its
// kernel.
struct Command {
  u32 what;  // 0: put, 1: put_notify, 2: wait, 3: notify, 4: barrier
  u32 peer;
  u32 offset, size;  // in the pair's region of the window
  u32 window;
  u32 value;
};

constexpr u32 windows = 2;
constexpr u32 region = 96;  // bytes of a window for each sender

struct Interpreter {
  Window<u8> inbox[windows];
  Window<u8> staging;  // each command has its own part, so that no source changes before its flush
  Window<Command> programs;
  u32 length;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const program = programs.local(self);
    auto const out = staging.local(self);
    for (u32 i = 0; i < length; ++i) {
      Command const command = program[i];
      RankId const peer{command.peer};
      auto const& window = inbox[command.window];
      auto const source = out.subspan(u64{i} * region, command.size);
      auto const target = window.at(peer, u64{self.id()} * region + command.offset);
      if (command.what <= 1)
        self.each(command.size,
                  [&](u64 b) { source[b] = static_cast<u8>(mixed(command.value, b)); });
      switch (command.what) {
        case 0: self.put(target, source); break;
        case 1: self.put_notify(target, source, Tag{self.id()}); break;
        case 2: self.wait(window, Tag{command.peer}, command.value, peer); break;
        case 3: self.notify(window, peer, Tag{self.id()}); break;
        default: self.barrier();
      }
    }
  }
};

struct Draw {
  std::vector<std::vector<Command>> programs;
  std::vector<std::vector<u8>> expected[windows];  // by rank
};

// What one rank has sent another, in order, until a barrier after it was consumed.
struct Message {
  bool notification;
  u32 window, offset, size;
  bool consumed = false;
};
using Pair = std::vector<Message>;

u32 pending(Pair const& sent, u32 window) {
  return static_cast<u32>(std::ranges::count_if(sent, [window](Message const& m) {
    return m.notification && !m.consumed && m.window == window;
  }));
}

// Bytes that were announced must not be overwritten before they are consumed, and the sender knows
// that.
bool may_put(Pair const& sent, u32 window, u32 offset, u32 size) {
  bool announced = false;
  for (auto m = sent.rbegin(); m != sent.rend(); ++m) {
    announced |= m->notification;
    bool const overlap = !m->notification && m->window == window && offset < m->offset + m->size &&
                         m->offset < offset + size;
    if (announced && overlap) return false;
  }
  return true;
}

// The first `count` notifications of the window go, and with the last of them all puts before it.
void consume(Pair& sent, u32 window, u32 count) {
  std::size_t last = 0;
  for (u32 seen = 0; seen < count; ++last)
    seen += sent[last].notification && !sent[last].consumed && sent[last].window == window;
  for (std::size_t i = 0; i < last; ++i)
    sent[i].consumed |= !sent[i].notification || sent[i].window == window;
}

// Executed in the order in which it is drawn, so no wait is for something that comes later: no
// deadlock.
Draw draw(std::mt19937_64& random, u32 ranks, u32 steps) {
  Draw result;
  result.programs.resize(ranks);
  for (auto& contents : result.expected)
    contents.assign(ranks, std::vector<u8>(u64{ranks} * region, 0));
  std::vector<Pair> pairs(ranks * ranks);
  auto const pair = [&](u32 from, u32 to) -> Pair& { return pairs[from * ranks + to]; };
  auto const below = [&](u32 n) { return static_cast<u32>(random() % n); };
  for (u32 step = 0; step < steps; ++step) {
    u32 const me = below(ranks), peer = below(ranks), w = below(windows);
    u32 const offset = below(region), size = below(8) == 0 ? 0 : below(region - offset + 1);
    u32 const kind = below(20), value = static_cast<u32>(random());
    if (kind == 0) {
      for (auto& program : result.programs) program.push_back({4, 0, 0, 0, 0, 0});
      for (auto& sent : pairs) std::erase_if(sent, [](Message const& m) { return m.consumed; });
    } else if (kind <= 11) {
      u32 const what = !may_put(pair(me, peer), w, offset, size) ? 3
                       : kind <= 3                               ? 0
                       : kind <= 9                               ? 1
                                                                 : 3;
      result.programs[me].push_back({what, peer, offset, size, w, value});
      if (what != 3) pair(me, peer).push_back({false, w, offset, size});
      if (what != 0) pair(me, peer).push_back({true, w, 0, 0});
      if (what != 3)
        for (u32 b = 0; b < size; ++b)
          result.expected[w][peer][me * region + offset + b] = static_cast<u8>(mixed(value, b));
    } else if (u32 const there = pending(pair(peer, me), w)) {
      u32 const taken = 1 + below(there);
      consume(pair(peer, me), w, taken);
      result.programs[me].push_back({2, peer, 0, 0, w, taken});
    }
  }
  for (u32 w = 0; w < windows; ++w)
    for (u32 from = 0; from < ranks; ++from)
      for (u32 to = 0; to < ranks; ++to)
        if (u32 const left = pending(pair(from, to), w))
          result.programs[to].push_back({2, from, 0, 0, w, left});
  return result;
}

void run_and_compare(World& world, u64 seed, Dim3 threads) {
  SCOPED_TRACE("MESHPOST_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  u32 const ranks = world.size();
  auto drawn = draw(random, ranks, 200);
  std::size_t length = 1;
  for (auto const& program : drawn.programs) length = std::max(length, program.size());
  auto const programs = world.window<Command>(length, Tags{0});
  auto const staging = world.window<u8>(length * region, Tags{0});
  Interpreter kernel{{}, staging, programs, static_cast<u32>(length)};
  for (auto& inbox : kernel.inbox) inbox = world.window<u8>(u64{ranks} * region, Tags{ranks});
  for (u32 r = 0; r < ranks; ++r) {
    auto& program = drawn.programs[r];
    program.resize(length, {0, 0, 0, 0, 0, 0});  // puts of nothing
    programs.write(RankId{r}, 0, program);
  }
  auto const result = world.run(kernel, {.threads = threads});
  EXPECT_TRUE(result.leftovers.empty());
  for (u32 w = 0; w < windows; ++w)
    for (u32 r = 0; r < ranks; ++r)
      EXPECT_TRUE(kernel.inbox[w].read(RankId{r}) == drawn.expected[w][r]) << "at rank " << r;
  for (auto const& inbox : kernel.inbox) world.free(inbox);
  world.free(programs);
  world.free(staging);
}

class RandomPrograms : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, RandomPrograms, test::all_shapes(), test::shape_name);

TEST_P(RandomPrograms, leave_what_a_sequential_oracle_says) {
  if (char const* const given = std::getenv("MESHPOST_TEST_SEED")) {
    run_and_compare(world, std::strtoull(given, nullptr, 10), launch.threads);
    return;
  }
  u64 const first =
      mixed(static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count()));
  for (u64 i = 0; i < 25 && !HasFailure(); ++i) run_and_compare(world, first + i, launch.threads);
}

TEST_P(RandomPrograms, keep_the_delivery_rule) {
  if (test::on_gpus()) GTEST_SKIP() << "delivery is checked on CPU devices";
  auto wanted = test::options(GetParam().ranks, test::devices(GetParam().spread));
  wanted.check_delivery = true;
  World checked(wanted);
  for (u64 seed = 1; seed <= 5 && !HasFailure(); ++seed)
    run_and_compare(checked, seed, launch.threads);
}

}  // namespace
}  // namespace meshpost
