#pragma once
#include "meshpost/rma/rank.hpp"

// Ranks out of reach of loads and stores: thread 0 writes a request into a ring, the host's proxy
// (src/rma/proxy.cpp) sees to it.
//
// Order: the slot is taken and published in program order of thread 0, the proxy empties slots in
// their order, and requests to one process arrive in the order in which they were taken: first in,
// first out for each pair of ranks. Publishing releases what this rank did before, so the proxy
// sees the source's bytes, and a rank that gets them sees what was stored before publish().
//
// A source may change when the operation returns, as in the direct protocol: a short one is copied
// into the request, for a longer one the rank waits until the proxy has read it.

namespace meshpost {

MESHPOST_FN inline bool Rank::is_far(u32 device) const {
  return state_->posts.records != nullptr && state_->posts.far[device] != 0;
}

MESHPOST_FN inline bool Rank::waits_for(Post const& request) {
  return request.kind == Post::Kind::get ||
         (request.kind == Post::Kind::put && request.bytes > Post::most_inline);
}

/// A notification alone, which fits 16 bytes.
MESHPOST_FN inline bool Rank::is_bare(Post const& request) {
  return request.kind == Post::Kind::put && request.bytes == 0 && request.counter &&
         request.sender && BareCount::fits(request.counter, request.sender);
}

namespace detail {
// That the host finds all of it where it finds the flag rests on what devices and buses do with an
// aligned store of 16 bytes: it comes as one write of one cache line.
MESHPOST_FN inline void publish(BareCount& in_ring, BareCount const& count) {
#if defined(__CUDA_ARCH__)
  memory::fence(Order::system);
  u32 const words[] = {static_cast<u32>(count.place), static_cast<u32>(count.place >> 32),
                       count.number};
  memory::store_packet(&in_ring, words, count.ready);
#else
  in_ring.place = count.place;
  in_ring.number = count.number;
  memory::store(&in_ring.ready, count.ready, Order::system);
#endif
}
}  // namespace detail

/// By one thread.
MESHPOST_FN inline void Rank::post_alone(Post const& request) {
  Post whole = request;
  whole.rank = id_;
  whole.local_rank = local_id_;
  whole.waits = waits_for(request);
  fill_record(state_->posts, block_, whole);
}

// Out of line: ranks in reach should not have to step over it.
MESHPOST_COLD inline void Rank::fill_record(PostRing const& ring, Block block, Post request) {
  u32 const mine = memory::fetch_add_device(ring.head, 1);
  // Whether there is room a GPU asks over the bus, so not each time.
  for (u32 tail = memory::load_acquire(ring.seen); mine - tail >= PostRing::capacity;) {
    block.yield();  // the proxy reads on
    tail = memory::load_acquire(ring.tail);
    memory::store(ring.seen, tail, Order::device);
  }
  PostRecord& record = ring.records[mine % PostRing::capacity];
  if (is_bare(request)) {
    // Behind the fence there is only this store, so the fence waits for none over the bus.
    BareCount const alone{BareCount::place_of(request.counter, request.sender), request.rank,
                          mine + 1};
    return detail::publish(record.alone, alone);
  }
  record.alone.place = 0;
  record.post = request;
  if (request.kind == Post::Kind::put && !request.waits && request.bytes != 0)
    memory::copy(record.data, request.source, request.bytes, 0, 1);
  memory::store(&record.alone.ready, mine + 1, Order::system);
}

/// By all threads.
MESHPOST_FN inline void Rank::post(Operation operation, Post const& request) {
  block_.sync();  // what the other threads did is complete
  if (thread() == 0) post_alone(request);
  if (!waits_for(request)) return;
  ++posted_;
  await_posted(operation);
}

/// Until the proxy has read the sources of all this rank's requests, or filled their targets.
MESHPOST_FN inline void Rank::await_posted(Operation operation) {
  block_.await_out_of_line(
      {&state_->posts.done[local_id_], posted_, WordType::counter, Compare::greater_equal},
      {operation, 0, 0, 0});
}

/// A strided put, run by run; by all threads. The rank waits once, for all of them. Where runs are
/// short and lie side by side at the target, a request has as many as it can hold.
MESHPOST_FN inline void Rank::post_runs(Operation operation, StridedCopy const& copy) {
  if (copy.run > Post::most_inline) {
    if (thread() == 0)
      copy.each_run([&](char* target, char const* source) {
        post_alone({.target = target, .source = source, .bytes = copy.run});
      });
    posted_ += static_cast<u32>(copy.runs());
    await_posted(operation);
    return;
  }
  if (thread() != 0) return;
  char packed[Post::most_inline];
  Post request{.source = packed};
  auto const send = [&] {
    if (request.bytes != 0) post_alone(request);
  };
  copy.each_run([&](char* target, char const* source) {
    bool const follows = target == static_cast<char*>(request.target) + request.bytes;
    if (!follows || request.bytes + copy.run > Post::most_inline) {
      send();
      request.target = target;
      request.bytes = 0;
    }
    memory::copy(packed + request.bytes, source, copy.run, 0, 1);
    request.bytes += copy.run;
  });
  send();
}

/// A copy to memory of a device, wherever it is; by all threads.
MESHPOST_FN inline void Rank::copy_to(u32 device, void* target, void const* source, u64 bytes,
                                      Operation operation) {
  if (is_far(device)) post(operation, {.target = target, .source = source, .bytes = bytes});
  else memory::copy(target, source, bytes, thread(), threads());
}

}  // namespace meshpost
