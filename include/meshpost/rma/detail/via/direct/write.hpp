#pragma once
#include "meshpost/device/strided_copy.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

// clang-format off
// The direct way: copy, fence, raise the counter.
//
// Why the target sees the bytes once it has seen the count (PTX memory model; C++ on CPU devices):
//  1. Each thread of the sender stores its share (write). block_.sync() orders the stores of all
//     threads before what thread 0 does next.
//  2. Thread 0 fences at a scope that includes both ranks (device if they share one, else system),
//     then adds to the counter with a relaxed atomic. Together these are a release pattern,
//     cumulative over step 1.
//  3. The target's thread 0 reads that value, or a later one of the same counter, with acquire at
//     system scope (Block::await). This read synchronises with the release. All adds to a counter
//     are read-modify-writes, so a later value continues the release sequences of all earlier ones.
//  4. Block::any() then orders the target's other threads after its thread 0.
// Logical devices of one GPU are different devices here, as if each were a GPU. Their ranks fence
// at system scope, which includes both. Adds to one word never differ in scope. All adds to a
// counter have system scope (memory::add), from any rank on any device. The words with adds at
// device scope (a barrier's `arrived`, the heads of rings) belong to one logical device, whose
// ranks are on one GPU. A rank subtracts the count that it consumes from the same counter by its
// own relaxed add, which orders nothing and need not.
//
// A word (put_value, wait_until) is ordered as a count is: step 2 stores it behind the fence, and
// step 3 reads it. It is stored, not added to. So only a reader of this rank's value is behind the
// fence, of this store or of a later one.
//
// First in, first out per pair: a rank's puts and notifications to one target are all stores and
// adds of its block. Each notification fences what came before it. If the pair has a lane, its
// notifications go by the lane, as long as there is room (lane/write.hpp).
//
// A notification beyond the device needs no fence if nothing was stored there since the last system
// fence. It orders no puts, because there are none, and plain stores take part only after
// publish(). Packets are stores there, too: a direct notification to a rank to which the sender may
// have a lane is fenced. A notification without a fence does not hold earlier loads, nor does it
// pass on what this rank has acquired. The model promises neither (docs/architecture.md, "What
// rests on hardware alone").
//
// tests/litmus has all of this, against a model of PTX's memory.
// clang-format on

namespace meshpost::via::direct {

/// Copies; by all threads, each a share.
MESHPOST_FN inline void write(Sender& self, Location const& to, void* target, void const* source,
                              u64 bytes) {
  memory::copy(target, source, bytes, self.thread(), self.threads());
  self.stored_at(to);
}
MESHPOST_FN inline void write(Sender& self, Location const& to, StridedCopy const& copy) {
  memory::copy(copy, self.thread(), self.threads());
  self.stored_at(to);
}

}  // namespace meshpost::via::direct
