#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "support/programs.hpp"

namespace meshpost::test {

/// Operations of the ranks in one run, and notifications that are not consumed in it.
struct RunPrograms {
  std::vector<std::vector<Command>> of;  ///< by rank
  u32 first_tag = 0;
  std::vector<Unconsumed> unconsumed;
};

/// Draws programs that keep the contract, and computes their results. It executes them in the order
/// in which it draws them. So no wait is for a later operation, and there is no deadlock. Windows
/// keep their contents from run to run.
class Oracle {
 public:
  explicit Oracle(u32 ranks)
      : ranks_(ranks),
        region_(region_of(ranks)),
        pairs_(u64{ranks} * ranks),
        words_(ranks, std::vector<u64>(ranks, 0)) {
    for (auto& contents : bytes_) contents.assign(ranks, std::vector<u8>(u64{ranks} * region_, 0));
  }

  enum class Leaves { nothing, some };
  /// The next run. Its end delivers everything: ranks first read the bytes that earlier runs put.
  RunPrograms draw(std::mt19937_64& random, u32 steps, Leaves leaves) {
    programs_.assign(ranks_, {});
    random_ = &random;
    long_ = below(3) == 0;
    lazy_ = below(3) == 0;
    for (u32 rank = 0; rank < ranks_; ++rank) get(rank, below(ranks_), below(windows));
    for (u32 step = 0; step < steps; ++step) draw_one();
    u32 const first_tag = below(first_tags);
    std::vector<Unconsumed> unconsumed;
    u32 const one_in = leaves == Leaves::some ? 1 + below(8) : 0;
    for (u32 w = 0; w < windows; ++w)
      for (u32 from = 0; from < ranks_; ++from)
        for (u32 to = 0; to < ranks_; ++to) {
          u32 const there = pending(pair(from, to), w);
          u32 const left = there > 0 && one_in > 0 && below(one_in) == 0 ? 1 + below(there) : 0;
          if (there > left) wait(What::wait, from, to, w, there - left);
          if (left > 0)
            unconsumed.push_back({std::string("window '") + window_names[w] + "'", RankId{to},
                                  Tag{first_tag + from}, left, RankId{from}});
        }
    for (auto& sent : pairs_) sent.clear();
    return {std::move(programs_), first_tag, std::move(unconsumed)};
  }
  /// Content of a window at a rank when all drawn operations are done.
  std::vector<u8> const& bytes(u32 window, u32 rank) const { return bytes_[window][rank]; }
  std::vector<u64> const& words(u32 rank) const { return words_[rank]; }

 private:
  // Messages of one rank to another, in order, until a barrier after they were consumed.
  struct Message {
    enum Kind : u32 { put, notification, word, read } kind;  // read by a get of some rank
    u32 window, offset, size;
    bool consumed = false;

    bool overlaps(u32 w, u32 from, u32 bytes) const {
      return (kind == put || kind == read) && window == w && from < offset + size &&
             offset < from + bytes;
    }
    bool pends(u32 w) const { return kind == notification && !consumed && window == w; }
  };
  using Pair = std::vector<Message>;

  Pair& pair(u32 from, u32 to) { return pairs_[u64{from} * ranks_ + to]; }
  u32 below(u32 n) { return static_cast<u32>((*random_)() % n); }
  static u32 pending(Pair const& sent, u32 window) {
    return static_cast<u32>(
        std::ranges::count_if(sent, [window](Message const& m) { return m.pends(window); }));
  }

  void draw_one() {
    u32 const me = below(ranks_), w = below(windows), kind = below(32);
    u32 const peer = lazy_ && below(4) != 0 ? (me + 1) % ranks_ : below(ranks_);
    if (kind < 12) return put(kind < 4 ? What::put : What::put_notify, me, peer, w);
    if (kind < 14) return notify(me, peer, w);
    if (kind < 22) {
      if (lazy_ && below(16) != 0) return;
      if (u32 const there = pending(pair(peer, me), w))
        wait(kind < 18 ? What::wait : What::test, peer, me, w, 1 + below(there));
      return;
    }
    if (kind < 25) return get(me, peer, w);
    if (kind < 27) return put_value(me, peer);
    if (kind < 29) return wait_until(me, peer);
    if (kind < 30) return programs_[me].push_back({What::flush, 0, w});
    if (below(ranks_) == 0) barrier();
  }

  void put_value(u32 me, u32 peer) {
    programs_[me].push_back({What::put_value, peer, 0, static_cast<u32>(++words_[peer][me])});
    pair(me, peer).push_back({Message::word, 0, 0, 0});
  }

  // Waits for the last word put there, then reads the bytes of the last put before it.
  void wait_until(u32 me, u32 peer) {
    Command command{What::wait_until, peer, 0, static_cast<u32>(words_[me][peer]), 0, 0, 0, peer};
    auto const& sent = pair(peer, me);
    bool before = false;
    for (auto m = sent.rbegin(); m != sent.rend(); ++m) {
      before |= m->kind == Message::word;
      if (!before || m->kind != Message::put) continue;
      command.in = m->window, command.offset = m->offset, command.size = m->size;
      break;
    }
    look(command, me);
  }

  // The bytes that are read after a wait, in the region of its peer.
  void look(Command& command, u32 me) {
    command.sum =
        sum_of(bytes_[command.in][me], u64{command.from} * region_ + command.offset, command.size);
    programs_[me].push_back(command);
  }

  // Most are short; some are too long for lanes. In some programs most are too long.
  void draw_range(u32& offset, u32& size) {
    u32 const kind = below(32);
    u32 const longest = below(2) == 0 ? region_ / 2 : 4096;
    u32 const most = kind < 4 ? 0 : kind < 26 ? (long_ ? 1100 : 64) : kind < 31 ? 512 : longest;
    size = below(most + 1);
    offset = below(region_ - size + 1);
  }

  void put(What what, u32 me, u32 peer, u32 w) {
    u32 offset = 0, size = 0;
    draw_range(offset, size);
    auto& sent = pair(me, peer);
    // Notified bytes, or bytes followed by a word, must not be overwritten before they are consumed
    // and the sender knows that. The same holds for bytes that others read.
    bool announced = false;
    for (auto m = sent.rbegin(); m != sent.rend(); ++m) {
      announced |= m->kind == Message::notification || m->kind == Message::word;
      if ((announced || m->kind == Message::read) && m->overlaps(w, offset, size))
        return notify(me, peer, w);
    }
    u32 const value = static_cast<u32>((*random_)());
    auto& target = bytes_[w][peer];
    for (u32 b = 0; b < size; ++b) target[u64{me} * region_ + offset + b] = byte_of(value, b);
    programs_[me].push_back({what, peer, w, value, offset, size});
    sent.push_back({Message::put, w, offset, size});
    if (what == What::put_notify) sent.push_back({Message::notification, w, 0, 0});
  }

  void notify(u32 me, u32 peer, u32 w) {
    programs_[me].push_back({What::notify, peer, w});
    pair(me, peer).push_back({Message::notification, w, 0, 0});
  }

  // Consumes the first `count` notifications of the window, and with the last of them all puts
  // before it. The bytes of the last put are read.
  void wait(What what, u32 from, u32 me, u32 w, u32 count) {
    Command command{what, from, w, count, 0, 0, 0, from};
    auto& sent = pair(from, me);
    std::size_t last = 0;
    for (u32 seen = 0; seen < count; ++last) seen += sent[last].pends(w);
    for (std::size_t i = 0; i < last; ++i) {
      auto& m = sent[i];
      if (m.kind == Message::put && !m.consumed)
        command.in = m.window, command.offset = m.offset, command.size = m.size;
      m.consumed |= m.kind == Message::put || m.window == w;
    }
    look(command, me);
  }

  // Bytes of another rank at a third rank, which were there before the last barrier.
  void get(u32 me, u32 peer, u32 w) {
    Command command{What::get, peer, 0, below(16), 0, 0, w, below(ranks_)};
    draw_range(command.offset, command.size);
    auto& sent = pair(command.from, peer);
    if (std::ranges::any_of(sent, [&](Message const& m) {
          return m.kind == Message::put && m.overlaps(w, command.offset, command.size);
        }))
      return;
    command.sum =
        sum_of(bytes_[w][peer], u64{command.from} * region_ + command.offset, command.size);
    programs_[me].push_back(command);
    sent.push_back({Message::read, w, command.offset, command.size});
  }

  void barrier() {
    for (auto& program : programs_) program.push_back({What::barrier});
    for (auto& sent : pairs_)
      std::erase_if(sent, [](Message const& m) { return m.consumed || m.kind >= Message::word; });
  }

  u32 ranks_, region_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<u8>> bytes_[windows];  // [rank][byte]
  std::vector<std::vector<u64>> words_;          // [rank][sender]
  std::vector<std::vector<Command>> programs_;
  std::mt19937_64* random_ = nullptr;
  bool long_ = false, lazy_ = false;  // so that lanes fill up
};

}  // namespace meshpost::test
