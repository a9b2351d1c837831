#pragma once
#include <cstring>

#include "support/worlds.hpp"

namespace meshpost::test {

/// The layouts of a put, drawn from a number: equal extents, strides in any order and with gaps.
struct RandomPieces {
  static constexpr u64 room = 1800;  ///< elements that are enough for any

  StridedLayout target, source;

  MESHPOST_FN explicit RandomPieces(u64 seed) : state_(mixed(seed)) {
    bool const rows = draw(3) == 0;  // long ones, so that they take the ways of long puts
    u64 const most = rows ? 4 : 6;
    Extents3 extents{rows ? draw(41) : draw(most), draw(most), draw(most)};
    if (draw(4) == 0) extents.z = 1;
    bool const plain = draw(5) == 0;  // one run on both sides: by lane, if there are lanes
    target = plain ? StridedLayout::dense(extents) : layout(extents, rows);
    source = plain ? target : layout(extents, rows);
  }

 private:
  MESHPOST_FN u64 draw(u64 limit) { return (state_ = mixed(state_)) % limit; }
  MESHPOST_FN StridedLayout layout(Extents3 extents, bool rows) {
    u64 const counts[] = {extents.x, extents.y, extents.z};
    u64 const first = rows ? 0 : draw(3);  // the direction with the smallest stride
    u64 const second = (first + 1 + draw(2)) % 3;
    u64 const order[] = {first, second, 3 - first - second};
    u64 strides[3]{}, next = 1;
    for (u64 const d : order) {
      strides[d] = next + (draw(2) == 0 ? 0 : draw(3));
      next = strides[d] * (counts[d] == 0 ? 1 : counts[d]);
    }
    return {extents, {strides[0], strides[1], strides[2]}, draw(8)};
  }
  u64 state_;
};

/// work(target, source) for each element, in the order of a packed side.
template <class Work>
MESHPOST_FN void each_element(StridedLayout const& target, StridedLayout const& source,
                              Work&& work) {
  auto const at = [](StridedLayout const& l, u64 i, u64 j, u64 k) {
    return l.offset + i * l.strides.x + j * l.strides.y + k * l.strides.z;
  };
  for (u64 k = 0; k < target.extents.z; ++k)
    for (u64 j = 0; j < target.extents.y; ++j)
      for (u64 i = 0; i < target.extents.x; ++i) work(at(target, i, j, k), at(source, i, j, k));
}

/// Each rank puts strided pieces into separate places at the next rank, in every way, and consumes
/// them in their order.
template <class T>
struct SendPieces {
  Window<T> inbox, source;
  Window<u32> counters;
  u64 seed;
  u32 messages;
  Findings findings;

  enum class Way : u32 { strided, packed_target, packed_source, put, counted_elsewhere, count };

  MESHPOST_FN static T element(u32 from, u64 place) {
    T value{};
    for (u32 b = 0; b < sizeof(T); ++b)
      reinterpret_cast<u8*>(&value)[b] = static_cast<u8>(mixed(from, place, b));
    return value;
  }
  MESHPOST_FN static bool equal(T const& a, T const& b) {
    bool same = true;
    for (u32 i = 0; i < sizeof(T); ++i)
      same &= reinterpret_cast<u8 const*>(&a)[i] == reinterpret_cast<u8 const*>(&b)[i];
    return same;
  }
  MESHPOST_FN static Way way(u32 message) {
    return static_cast<Way>(message % static_cast<u32>(Way::count));
  }
  /// As in message `i` of rank `from`.
  MESHPOST_FN RandomPieces pieces(u32 from, u32 i) const {
    RandomPieces drawn(mixed(seed, from, i));
    auto const dense = StridedLayout::dense(drawn.target.extents);
    if (way(i) == Way::packed_target) drawn.target = dense;
    if (way(i) == Way::packed_source) drawn.source = dense;
    return drawn;
  }
  MESHPOST_FN static u64 place(u32 i) { return i * RandomPieces::room; }

  MESHPOST_FN void send(Rank& self, RankId next, u32 i) const {
    auto const drawn = pieces(self.id(), i);
    auto const to = inbox.at(next, place(i)).subspan(0, RandomPieces::room);
    auto const from = source.local(self);
    switch (way(i)) {
      case Way::packed_target: return self.put_notify(to, from.strided(drawn.source), Tag{0});
      case Way::packed_source:
        return self.put_notify(to.strided(drawn.target), from.subspan(0, drawn.source.volume()),
                               Tag{0});
      case Way::put:
        self.put(to.strided(drawn.target), from.strided(drawn.source));
        return self.notify(inbox, next, Tag{0});
      case Way::counted_elsewhere:
        return self.put_notify(to.strided(drawn.target), from.strided(drawn.source), counters,
                               Tag{1});
      default: return self.put_notify(to.strided(drawn.target), from.strided(drawn.source), Tag{0});
    }
  }
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    RankId const next{(self.id() + 1) % n}, previous{(self.id() + n - 1) % n};
    auto const out = source.local(self);
    auto const mine = inbox.local(self);
    self.each(out.size(), [&](u64 e) { out[e] = element(self.id(), e); });
    for (u32 i = 0; i < messages; ++i) send(self, next, i);
    self.flush(inbox);
    for (u32 i = 0; i < messages; ++i) {
      if (way(i) == Way::counted_elsewhere) self.wait(counters, Tag{1}, 1, previous);
      else self.wait(inbox, Tag{0}, 1, previous);
      auto const drawn = pieces(previous, i);
      if (self.thread() == 0)
        each_element(drawn.target, drawn.source, [&](u64 to, u64 from) {
          findings.add(self, !equal(mine[place(i) + to], element(previous, from)));
        });
    }
  }
};

/// Runs SendPieces, and compares the windows with a sequential oracle: only the pieces may have
/// changed. Returns the number of wrong elements.
template <class T>
u64 send_pieces(World& world, u64 seed, Launch const& launch = {}, u32 messages = 10) {
  SendPieces<T> const kernel{world.window<T>(messages * RandomPieces::room, Tags{1}, "inbox"),
                             world.window<T>(RandomPieces::room, Tags{0}, "source"),
                             world.window<u32>(0, Tags{2}, "counters"),
                             seed,
                             messages,
                             make_findings(world)};
  auto const poisoned = [&] {
    std::vector<T> part(messages * RandomPieces::room);
    std::memset(static_cast<void*>(part.data()), 0x55, part.size() * sizeof(T));
    return part;
  };
  auto const mine = [&](u32 rank) {  // of a job's processes, each writes and reads its own
    return rank / world.ranks_per_device() % world.processes() == world.process();
  };
  for (u32 rank = 0; rank < world.size(); ++rank)
    if (mine(rank)) kernel.inbox.write(RankId{rank}, 0, poisoned());
  world.run(kernel, launch);
  u64 wrong = total(world, kernel.findings);
  for (u32 rank = 0; rank < world.size(); ++rank) {
    u32 const sender = (rank + world.size() - 1) % world.size();
    auto expected = poisoned();
    for (u32 i = 0; i < messages; ++i) {
      auto const drawn = kernel.pieces(sender, i);
      each_element(drawn.target, drawn.source, [&](u64 to, u64 from) {
        expected[kernel.place(i) + to] = kernel.element(sender, from);
      });
    }
    auto const found = kernel.inbox.read(RankId{rank});
    for (u64 e = 0; e < found.size(); ++e) wrong += !kernel.equal(found[e], expected[e]);
  }
  world.free(kernel.findings.words);
  world.free(kernel.counters);
  world.free(kernel.source);
  world.free(kernel.inbox);
  return wrong;
}

}  // namespace meshpost::test
