// Handles that a kernel must not use: of freed windows, of communicators of another World, and of
// communicators without this rank.
#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

enum class Use {
  put,
  put_notify,
  counters,
  notify,
  get,
  put_value,
  wait,
  test,
  flush,
  local,
  count
};
constexpr char const* name_of[] = {"put",       "put_notify", "put_notify", "notify", "get",
                                   "put_value", "wait",       "test",       "flush",  "local"};

struct UseFreed {
  Window<u32> freed, live;  // 4 elements, 2 tags
  Use use;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = live.local(self);
    RankId const other{(self.id() + 1) % self.size()};
    switch (use) {
      case Use::put: return self.put(freed.at(other), mine);
      case Use::put_notify: return self.put_notify(freed.at(other), mine, Tag{0});
      case Use::counters: return self.put_notify(live.at(other), mine, freed, Tag{0});
      case Use::notify: return self.notify(freed, other, Tag{0});
      case Use::get: return self.get(mine, freed.at(other));
      case Use::put_value: return self.put_value(freed.at(other), 1u);
      case Use::wait: return self.wait(freed, Tag{0}, 0);
      case Use::test: self.test(freed, Tag{0}, 0); return;
      case Use::flush: return self.flush(freed);
      case Use::local: freed.local(self)[0] = 7; return;
      case Use::count: return;
    }
  }
};

constexpr u32 filled = 5;

void fill(World& world, Window<u32> const& window) {
  for (u32 r = 0; r < world.size(); ++r)
    window.write(RankId{r}, 0, std::vector<u32>(window.read(RankId{r}).size(), filled));
}

// Its memory now belongs to another window. No store by the old handle may reach it.
TEST(FreedWindow, in_a_kernel_is_named_by_every_operation_and_nothing_is_stored) {
  test::Listener const listener;
  World world(test::options(2));
  auto const live = world.window<u32>(4, Tags{2}, "live");
  auto const freed = world.window<u32>(4, Tags{2}, "inbox");
  world.free(freed);
  auto const successor = world.window<u32>(4, Tags{2}, "successor");
  ASSERT_EQ(successor.info().offset, freed.info().offset) << "then this test says nothing";
  fill(world, successor);
  for (u32 use = 0; use < static_cast<u32>(Use::count); ++use)
    EXPECT_TRUE(says(error_of([&] { world.run(UseFreed{freed, live, static_cast<Use>(use)}); }),
                     Kind::kernel_failed,
                     {std::string(name_of[use]) + " in ", "UseFreed", "window 'inbox' was freed",
                      "free it behind the last run"}))
        << name_of[use];
  for (u32 r = 0; r < world.size(); ++r)
    EXPECT_EQ(successor.read(RankId{r}), std::vector<u32>(4, filled));
}

struct PassRound {  // by each of the windows
  static constexpr u32 most = 8;
  Window<u32> windows[most];
  u32 count;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    u32 const previous = (self.id() + self.size() - 1) % self.size();
    for (u32 i = 0; i < count; ++i) {
      auto const mine = windows[i].local(self);
      if (self.thread() == 0) mine[1] = self.id() * most + i;
      self.put_notify(windows[i].at(next), mine.subspan(1, 1), Tag{0});
      self.wait(windows[i], Tag{0});
      findings.add(self, mine[0] != previous * most + i);
    }
  }
};

// For any set of freed windows: live ones can be used, freed ones cannot.
TEST(FreedWindow, leaves_those_before_between_and_behind_usable) {
  test::Listener const listener;
  World world(test::options(2));
  PassRound kernel{{}, 0, test::make_findings(world)};
  auto const live = world.window<u32>(4, Tags{2});
  for (u32 mask = 0; mask < 1u << 5; ++mask) {
    std::vector<Window<u32>> made, freed;
    for (u32 i = 0; i < 5; ++i) made.push_back(world.window<u32>(4, Tags{2}));
    kernel.count = 0;
    for (u32 i = 0; i < 5; ++i)
      if ((mask >> i & 1) != 0) world.free(made[i]), freed.push_back(made[i]);
      else kernel.windows[kernel.count++] = made[i];
    kernel.windows[kernel.count++] = world.window<u32>(4, Tags{2});
    world.run(kernel);
    for (auto const& window : freed)
      EXPECT_TRUE(says(error_of([&] { world.run(UseFreed{window, live, Use::notify}); }),
                       Kind::kernel_failed, {"was freed"}))
          << mask;
    for (u32 i = 0; i < kernel.count; ++i) world.free(kernel.windows[i]);
  }
  EXPECT_EQ(test::total(world, kernel.findings), 0u);
}

enum class Ask {
  all_gather,
  all_reduce,
  reduce,
  reduce_scatter,
  broadcast,
  barrier,
  world_rank,
  count
};
constexpr char const* asked[] = {"all_gather", "all_reduce", "reduce",    "reduce_scatter",
                                 "broadcast",  "barrier",    "world_rank"};

struct UseCommunicator {
  Communicator where;
  Window<u32> window;
  Ask ask;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = window.local(self), one = mine.subspan(0, 1);
    switch (ask) {
      case Ask::all_gather: return self.all_gather(where, mine, one);
      case Ask::all_reduce: return self.all_reduce(where, mine, Sum{});
      case Ask::reduce: return self.reduce(where, mine, Sum{}, RankId{0});
      case Ask::reduce_scatter: return self.reduce_scatter(where, one, mine, Sum{});
      case Ask::broadcast: return self.broadcast(where, mine, RankId{0});
      case Ask::barrier: return self.barrier(where);
      case Ask::world_rank: self.world_rank(where, RankId{0}); return;
      case Ask::count: return;
    }
  }
};

TEST(Communicators, that_a_rank_has_no_part_in_are_named) {
  test::Listener const listener;
  World world(test::options(2));
  auto const nobody = world.split(world.communicator(), [](RankId) { return -1; });
  auto const window = world.window<u32>(8);
  for (u32 ask = 0; ask < static_cast<u32>(Ask::count); ++ask)
    EXPECT_TRUE(says(
        error_of([&] { world.run(UseCommunicator{nobody, window, static_cast<Ask>(ask)}); }),
        Kind::kernel_failed, {std::string(asked[ask]) + " in ", "in no group of the communicator"}))
        << asked[ask];
}

struct AskAlone {  // a thread of each rank, alone
  Communicator where;
  Window<u32> answers;
  int what;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.thread() + 1 == self.threads()) {
      auto const answer = answers.local(self);
      if (what == 0) answer[0] = self.id(where);
      if (what == 1) answer[0] = self.size(where);
      if (what == 2) answer[0] = self.world_rank(where, RankId{2});
    }
    self.barrier();
  }
};

TEST(Communicators, of_another_world_are_named_before_they_are_looked_up) {
  test::Listener const listener;
  World world(test::options(2)), other(test::options(2));
  other.window<u32>(u64{1} << 20);  // so the other heap is larger: this World has no memory there
  auto const foreign = other.split(other.communicator(), [](RankId r) { return r % 2; });
  auto const window = world.window<u32>(8);
  for (u32 ask = 0; ask < static_cast<u32>(Ask::count); ++ask)
    for (auto const& where : {foreign, Communicator{}})
      EXPECT_TRUE(
          says(error_of([&] { world.run(UseCommunicator{where, window, static_cast<Ask>(ask)}); }),
               Kind::kernel_failed, {std::string(asked[ask]) + " in ", "communicator of world"}))
          << asked[ask];
  for (int what = 0; what < 3; ++what)
    EXPECT_TRUE(
        says(error_of([&] { world.run(AskAlone{foreign, window, what}, {.threads = {4, 1, 1}}); }),
             Kind::kernel_failed,
             {what == 0   ? "id in "
              : what == 1 ? "size in "
                          : "world_rank in ",
              "communicator of world"}));
}

TEST(Communicators, of_others_have_no_number_for_a_rank_and_no_ranks) {
  test::Listener const listener;
  World world(test::options(4));
  auto const window = world.window<u32>(1);
  auto const even = world.split(world.communicator(), [](RankId r) { return r % 2 == 0 ? 0 : -1; });
  world.run(AskAlone{even, window, 0});
  EXPECT_EQ(window.read(RankId{0})[0], 0u);
  EXPECT_EQ(window.read(RankId{2})[0], 1u);
  EXPECT_EQ(window.read(RankId{1})[0], Note::no_rank);
  world.run(AskAlone{even, window, 1});
  EXPECT_EQ(window.read(RankId{0})[0], world.size() / 2);
  EXPECT_EQ(window.read(RankId{3})[0], 0u);
  for (Dim3 const threads : {Dim3{0, 1, 1}, Dim3{40, 1, 1}})
    EXPECT_TRUE(says(error_of([&] { world.run(AskAlone{even, window, 2}, {.threads = threads}); }),
                     Kind::kernel_failed, {"world_rank in "}));
  auto const all = world.split(world.communicator(), [](RankId) { return 0; });
  world.run(AskAlone{all, window, 2});
  EXPECT_EQ(window.read(RankId{1})[0], 2u);
  auto const pairs = world.split(world.communicator(), [](RankId r) { return r / 2; });
  EXPECT_TRUE(says(error_of([&] { world.run(AskAlone{pairs, window, 2}); }), Kind::kernel_failed,
                   {"world_rank in ", "rank 2 does not exist in a communicator of 2 ranks"}));
}

}  // namespace
}  // namespace meshpost
