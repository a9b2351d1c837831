#pragma once
// Kernels whose rounds are timed, besides those of bench/rma/ping_pong.hpp.
#include "rma/ping_pong.hpp"

namespace dcuda_tables {

using namespace meshpost;

/// Rank i of the first half puts `bytes` to rank i of the second half, which answers with a
/// notification alone. Then the next round begins. This is the thesis's test of bandwidth.
struct Acknowledged {
  Window<char> data;
  Window<u64> elapsed;  // ns of all timed rounds, at the pair's first rank
  u64 bytes;
  u32 active, warm_up, rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    auto const source = data.local(self).subspan(bench::outgoing(bytes), bytes);
    bool const first = self.id() < self.size() / 2;
    u64 const ns = bench::play(self, data, active, warm_up, rounds, [&](RankId partner) {
      if (first) self.put_notify(data.at(partner), source, Tag{0});
      else self.notify(data, partner, Tag{0});
    });
    if (self.thread() == 0) elapsed.local(self)[0] = ns;
  }
};

/// The host sets a word of pinned memory to 1. Rank 0 polls it and sets it back to 0.
struct ResetFlag {
  u32* flag;
  Window<u32> failed;  // 1 at rank 0: the host did not set it in time
  u32 rounds;
  static constexpr u64 deadline = 20'000'000'000;  // ns of a round; the host has less

  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0 || self.thread() != 0) return;
    for (u32 i = 0; i < rounds; ++i) {
      u64 since = 0;  // the clock is read seldom, because this would be a part of the time
      for (u32 polls = 1; memory::load_acquire(flag) == 0; ++polls) {
        if (polls % 4096 != 0) continue;
        if (since == 0) since = self.now();
        if (self.now() - since < deadline) continue;
        failed.local(self)[0] = 1;
        return;
      }
      memory::store(flag, u32{0}, Order::none);
    }
  }
};

/// Rank 0 answers each notification of the host with another one.
struct AnswerHost {
  Window<u32> box;
  HostId host;
  u32 rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0) return;
    for (u32 i = 0; i < rounds; ++i) {
      self.wait(box, Tag{0});
      self.notify(box, host, Tag{1});
    }
  }
};

}  // namespace dcuda_tables
