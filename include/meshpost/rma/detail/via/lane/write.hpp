#pragma once
#include "meshpost/rma/detail/via/lane/lane.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

// How messages get into lanes; lane.hpp has the argument.

namespace meshpost {
namespace detail {

/// The two ranks of a lane.
struct LanePair {
  u32 sender, target;
};

/// Requests what a sender does not know: a lane, or how much was unpacked. By one thread.
MESHPOST_FN inline void refresh(RunState const& state, LanePair ranks, LaneOut& out) {
  if (out.lane == LaneOut::refused) return;
  LaneEnd const here(state, ranks.sender), there(state, ranks.target);
  if (out.lane != 0) {
    out.known = memory::load_acquire(here.credit(ranks.target));
    return;
  }
  u32 const lane = memory::fetch_add(there.claims(), 1);
  if (lane >= state.lanes.count) {
    out.lane = LaneOut::refused;
    return;
  }
  out.lane = lane + 1;
  out.begin = memory::load_acquire(there.taken(lane));  // all unpacked: it can't change
  memory::store(there.owner(lane), (u64{ranks.sender} + 1) | static_cast<u64>(out.begin) << 32,
                Order::none);
  memory::fence(Order::system);  // a rank that finds a packet finds the owner
}

/// The sender's hold of a lane with this state.
MESHPOST_FN inline LaneHold hold(RunState const& state, u32 target, LaneOut const& out) {
  if (out.lane == 0 || out.lane == LaneOut::refused) return {.target = target + 1};
  return {.ring = LaneEnd(state, target).ring(out.lane - 1),
          .target = target + 1,
          .next = out.begin + out.sent,
          .end = out.begin + out.known + state.lanes.packets()};
}

/// Stores this thread's share of a message's packets, from the next place of its lane on. `shift`:
/// as in Lanes.
MESHPOST_COLD inline void store_message(LaneHold held, u32 shift, LaneHeader header,
                                        void const* source, u32 thread, u32 threads) {
  constexpr u32 each = memory::packet_words;
  u32 const packets = header.packets();
  for (u32 i = thread; i < packets; i += threads) {
    u32 words[each];
    for (u32 k = 0; k < each; ++k) {
      u32 const number = i * each + k;
      words[k] = number < Lanes::header_words
                     ? header.word(number)
                     : header.word_of(source, (number - Lanes::header_words) * 4);
    }
    u32 const position = held.next + i;
    memory::store_packet(held.ring + Lanes::index(position, shift), words,
                         Lanes::flag(position, shift));
  }
}

/// Returns the lane to `target`, with room for so many packets if possible, and gives up the one
/// that was held; by all threads.
MESHPOST_COLD inline LaneHold take_hold(RunState const& state, Block block, u32 rank, LaneHold held,
                                        u32 target, u32 packets) {
#if defined(__CUDA_ARCH__)
  LaneCache& cache = lane_cache();
  auto const out_of = [&](u32 other) -> LaneOut& { return cache.out(other); };
#else
  LaneEnd const here(state, rank);
  auto const out_of = [&](u32 other) -> LaneOut& { return here.out(other); };
#endif
  block.sync();  // all threads have read what they held
  if (block.thread() == 0) {
    if (held.ring) {
      LaneOut& last = out_of(held.target - 1);
      last.sent = held.next - last.begin;
    }
    LaneOut& out = out_of(target);
    if (!hold(state, target, out).has_room(target, packets))
      refresh(state, {.sender = rank, .target = target}, out);
#if defined(__CUDA_ARCH__)
    cache.held = hold(state, target, out);
#endif
  }
  block.sync();
#if defined(__CUDA_ARCH__)
  return cache.held;
#else
  return hold(state, target, out_of(target));
#endif
}

/// True if the message was sent; by all threads.
MESHPOST_FN inline bool send_by_lane(RunState const& state, Block& block, u32 rank, u32 target,
                                     LaneHold& held, LaneHeader const& header, void const* source,
                                     Order order) {
  u32 const packets = header.packets(), thread = block.thread(), threads = block.threads();
#if defined(__CUDA_ARCH__)
  // The most frequent case: words, a packet a thread, and there is room. Everything is ready before
  // the source is, because a load of what was just packed takes 300 cycles.
  if (held.has_room(target, packets) && packets <= threads &&
      (reinterpret_cast<u64>(source) | header.bytes) % 4 == 0) [[likely]] {
    u32 const shift = lane_cache().shift, position = held.next + thread;
    Packet* const address = held.ring + Lanes::index(position, shift);
    u32 words[3] = {header.word(0), header.word(1), header.word(2)};
    auto const* const from = static_cast<u32 const*>(source) + 3 * (thread - 1);
    bool const loads = thread != 0 && thread < packets;
    block.sync();  // what the other threads packed into the source is complete
#pragma unroll
    for (u32 k = 0; k < 3; ++k)
      if (loads) words[k] = 12 * (thread - 1) + 4 * k < header.bytes ? from[k] : 0;
    if (order != Order::none && thread == 0) memory::fence(order);
    if (thread < packets) memory::store_packet(address, words, Lanes::flag(position, shift));
    held.next += packets;
    return true;
  }
#endif
  block.sync();  // as above
  if (!held.has_room(target, packets)) {
    held = take_hold(state, block, rank, held, target, packets);
    if (!held.has_room(target, packets)) return false;
  }
  if (!block.step(hooks::Step::lane_send)) return true;
  if (order != Order::none && thread == 0) memory::fence(order);
  store_message(held, state.lanes.shift, header, source, thread, threads);
  held.next += packets;
  return true;
}

}  // namespace detail

namespace via::lane {

/// A message by a lane: bytes, and the notification behind them. True if it was sent; by all
/// threads.
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): memcpy's order, as in direct and proxy
MESHPOST_FN inline bool write(Sender& self, Location const& to, void* target, void const* source,
                              u64 bytes, Location const& counters, Tag tag) {
  u64 const offset = bytes == 0 ? 0 : static_cast<u64>(static_cast<char*>(target) - to.heap);
  u64 const word =
      static_cast<u64>(counters.counters - reinterpret_cast<u32*>(to.heap)) + tag.value;
  u32 const senders = counters.counter_part / detail::LaneHeader::line;
  // Not for memory outside the heap, nor for values that don't fit into the header.
  if (offset >= self.stride_ || senders > detail::LaneHeader::most_senders) return false;
  Order const order = to.near ? Order::device : self.unfenced_ ? Order::system : Order::none;
  detail::LaneHeader const header{.offset = offset,
                                  .counter = word,
                                  .bytes = static_cast<u32>(bytes),
                                  .senders = senders,
                                  .acquires = self.brings_ || order != Order::none};
  if (!detail::send_by_lane(*self.state_, self.block_, self.id_, to.rank, self.lane_, header,
                            source, order))
    return false;
  if (!to.near) self.unfenced_ = false;
  return true;
}

}  // namespace via::lane
}  // namespace meshpost
