#pragma once
// Kernels in which ranks send each other notifications and puts, in round trips or in one
// direction.
#include <algorithm>

#include <meshpost/meshpost.hpp>

namespace bench {

using namespace meshpost;

/// Position of a rank's own bytes in its part. They are behind the received bytes and in separate
/// cache lines, like the buffers of the other libraries.
MESHPOST_FN constexpr u64 outgoing(u64 bytes) { return bytes < 128 ? 128 : bytes; }

/// Rank i of the first half of the ranks exchanges messages with rank i of the second half. The
/// halves are two devices, or halves of one. `active` pairs take part. A round is a round trip:
/// `send(partner)` must raise the partner's counter 0 in `inbox`. Returns the ns of all rounds
/// after the warm-up rounds.
template <class T, class Send>
MESHPOST_FN u64 play(Rank& self, Window<T> const& inbox, u32 active, u32 warm_up, u32 rounds,
                     Send const& send) {
  u32 const half = self.size() / 2;
  u32 const pair = self.id() % half;
  if (pair >= active || self.id() >= 2 * half) return 0;
  bool const first = self.id() < half;
  RankId const partner{first ? pair + half : pair};
  u64 begin = 0;
  for (u32 i = 0; i < warm_up + rounds; ++i) {
    if (i == warm_up) begin = self.now();
    if (!first) self.wait(inbox, Tag{0});
    send(partner);
    if (first) self.wait(inbox, Tag{0});
  }
  return self.now() - begin;
}

struct PingPong {
  Window<char> data;
  Window<u64> elapsed;  // ns of all timed rounds, at the pair's first rank
  u64 bytes;
  u32 active, warm_up, rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    auto const source = data.local(self).subspan(outgoing(bytes), bytes);
    u64 const ns = play(self, data, active, warm_up, rounds, [&](RankId partner) {
      if (bytes == 0) self.notify(data, partner, Tag{0});
      else self.put_notify(data.at(partner), source, Tag{0});
    });
    if (self.thread() == 0) elapsed.local(self)[0] = ns;
  }
};

/// The floor of PingPong: two threads that only raise and poll each other's word, in the same
/// memory.
struct Flags {
  Window<u32> words;
  Window<u64> elapsed;
  u32 rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const half = self.size() / 2;
    bool const first = self.id() < half;
    if (self.id() % half != 0 || self.id() >= 2 * half || self.thread() != 0) return;
    u32* const mine = words.local(self).data();
    auto const& state = self.state();
    RankId const partner{first ? half : 0};
    u32* const theirs = reinterpret_cast<u32*>(
        state.heap + state.device_of(partner) * state.stride + words.info().offset +
        partner % self.local_size() * words.info().pitch);
    u64 const begin = self.now();
    for (u32 i = 1; i <= rounds; ++i) {
      if (first) memory::add(theirs, 1, Order::none);
      for (u32 polls = 0; memory::load_acquire(mine) < i && polls < 1u << 24; ++polls) {
      }
      if (!first) memory::add(theirs, 1, Order::none);
    }
    elapsed.local(self)[0] = self.now() - begin;
  }
};

/// The first half sends `puts` puts of `bytes` each, then waits until its partner has consumed them
/// all.
struct Stream {
  Window<char> data;
  Window<u64> elapsed;
  u64 bytes;
  u32 active, puts;
  bool both_ways;
  static constexpr int max_threads = 512;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const half = self.size() / 2;
    u32 const pair = self.id() % half;
    self.barrier();
    if (pair >= active || self.id() >= 2 * half) return;
    bool const first = self.id() < half;
    RankId const partner{first ? pair + half : pair};
    auto const source = data.local(self).subspan(outgoing(bytes), bytes);
    u64 const begin = self.now();
    if (first || both_ways)
      for (u32 i = 0; i < puts; ++i) self.put_notify(data.at(partner), source, Tag{0});
    if (!first || both_ways) {
      self.wait(data, Tag{0}, puts);
      self.notify(data, partner, Tag{1});
    }
    if (first || both_ways) self.wait(data, Tag{1});
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

/// Over the first ranks of all pairs.
inline u64 slowest(Window<u64> const& elapsed, u32 active) {
  u64 longest = 0;
  for (u32 r = 0; r < active; ++r) longest = std::max(longest, elapsed.read(RankId{r})[0]);
  return longest;
}

}  // namespace bench
