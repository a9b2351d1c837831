#pragma once
#include <algorithm>

#include "support/worlds.hpp"

namespace meshpost::test {

// Each rank sends each rank a number, by every operation.
struct Everything {
  Window<u32> put, got, words;
  u32 seed;
  MESHPOST_FN u32 number(u32 from, u32 to) const { return (from * 7919 + to) * 31 + seed; }
  MESHPOST_FN void operator()(Rank& self) const {
    auto const n = self.size();
    auto const mine = got.local(self), from = put.local(self);
    for (u32 to = 0; to < n; ++to)
      if (self.thread() == 0) mine[to] = number(self.id(), to);
    self.sync();
    self.publish();
    self.barrier();
    for (u32 to = 0; to < n; ++to)
      self.put_notify(put.at(RankId{to}, self.id()), mine.subspan(to, 1), Tag{0});
    self.wait(put, Tag{0}, n);
    for (u32 r = 0; r < n; ++r)
      if (from[r] != number(r, self.id())) self.fail("put_notify");
    self.barrier();
    for (u32 r = 0; r < n; ++r) self.get(from.subspan(r, 1), got.at(RankId{r}, self.id()));
    self.flush(got);
    self.sync();
    for (u32 r = 0; r < n; ++r)
      if (from[r] != number(r, self.id())) self.fail("get");
    self.barrier();  // no rank gets any more
    u32 const next = (self.id() + 1) % n;
    self.put_value(words.at(RankId{next}, 0), self.id() + 1);
    self.wait_until(words.local(self).subspan(0, 1), Compare::equal, (self.id() + n - 1) % n + 1);
    self.notify(words, RankId{next}, Tag{1});
    self.wait(words, Tag{1});
    self.sync();
    if (self.thread() == 0) mine[0] = number(self.id(), 0);
    self.sync();
    self.all_reduce(put.info().communicator, mine.subspan(0, 1), Sum{});
    u32 sum = 0;
    for (u32 r = 0; r < n; ++r) sum += number(r, 0);
    if (mine[0] != sum) self.fail("all_reduce");
    self.reduce_scatter(put.info().communicator, from.subspan(0, 1), mine, Max{});
    self.sync();
    if (from[0] != (self.id() == 0 ? sum : number(n - 1, self.id()))) self.fail("reduce_scatter");
    self.sync();
    self.all_gather(put.info().communicator, from, mine.subspan(0, 1));
    for (u32 r = 0; r < n; ++r)
      if (from[r] != sum) self.fail("all_gather");
  }
};

// Functions that launch are static: sources of nvcc and others include this.

/// `windows`: the maker of windows, a World or UserMemory.
template <class Windows>
static void try_everything(World& world, Windows& windows) {
  u32 const n = world.size();
  auto const put = windows.template window<u32>(n, Tags{2}, "put"),
             got = windows.template window<u32>(n, Tags{2}, "got"),
             words = windows.template window<u32>(1, Tags{2}, "words");
  for (u32 seed = 0; seed < 5; ++seed) world.run(Everything{put, got, words, seed});
}
[[maybe_unused]] static void try_everything(World& world) { try_everything(world, world); }

// Each rank sends each rank a block and gets it back. Each element encodes sender, receiver and
// round. Short and long blocks alternate, so that they take different ways.
struct Blocks {
  Window<u64> inbox, copies;
  u32 rounds;
  Findings findings;

  static constexpr u64 largest = 33'000;  // 264'000 bytes: more than the host reads at once
  MESHPOST_FN static u64 size_in(u32 round) { return round % 2 == 0 ? largest : 1 + round; }
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id();
    auto const mine = inbox.local(self), others = copies.local(self);
    auto const out = mine.subspan(n * largest, largest);
    for (u32 round = 0; round < rounds; ++round) {
      u64 const size = size_in(round);
      for (u32 i = 1; i <= n; ++i) {
        u32 const to = (me + i) % n;
        self.each(size, [&](u64 e) { out[e] = mixed(me, to, round, e); });
        self.put_notify(inbox.at(RankId{to}, me * largest), out.subspan(0, size), Tag{me});
        self.flush(inbox);
      }
      for (u32 from = 0; from < n; ++from) {
        self.wait(inbox, Tag{from}, 1, RankId{from});
        bool wrong = false;
        self.each(size,
                  [&](u64 e) { wrong |= mine[from * largest + e] != mixed(from, me, round, e); });
        findings.add(self, wrong);
      }
      self.publish();
      self.barrier();
      u32 const whose = (me + 1) % n;
      self.get(others.subspan(0, size), inbox.at(RankId{whose}, me * largest));
      self.sync();
      bool wrong = false;
      self.each(size, [&](u64 e) { wrong |= others[e] != mixed(me, whose, round, e); });
      findings.add(self, wrong);
      self.barrier();
    }
  }
};

template <class Windows>
static u64 wrong_blocks(World& world, u32 rounds, Windows& windows) {
  if (sanitized) rounds = std::min(rounds, 2u);  // a long block and a short one take seconds there
  u64 const all = Blocks::largest * (world.size() + 1);
  auto const inbox = windows.template window<u64>(all, Tags{world.size()}, "inbox"),
             copies = windows.template window<u64>(Blocks::largest, Tags{0}, "copies");
  auto const findings = make_findings(world);
  world.run(Blocks{inbox, copies, rounds, findings});
  return total(world, findings);
}
[[maybe_unused]] static u64 wrong_blocks(World& world, u32 rounds) {
  return wrong_blocks(world, rounds, world);
}

}  // namespace meshpost::test
