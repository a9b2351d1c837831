#pragma once
#include "meshpost/rma/detail/via/sender.hpp"

// Ranks out of reach of loads and stores: thread 0 writes a request into a ring, the host's proxy
// (src/rma/via/proxy/proxy.cpp) sees to it.
//
// Order: the slot is taken and published in program order of thread 0, the proxy empties slots in
// their order, and requests to one process arrive in the order in which they were taken: first in,
// first out for each pair of ranks. Publishing releases what this rank did before, so the proxy
// sees the source's bytes, and a rank that gets them sees what was stored before publish().
//
// A source may change when the operation returns, as in the direct protocol: a short one is copied
// into the request, for a longer one the rank waits until the proxy has read it.
//
// Sources and targets are any memory that the rank can load and store. On a GPU the host can't
// reach some of it, such as scratch(): a long put out of it, and a get into it, go in pieces by way
// of the rank's stage in the device's memory. All threads copy a piece; they meet before the
// request is published, and again behind the wait for it, so the stage is not written while it is
// read.

namespace meshpost::via::proxy {

MESHPOST_FN inline bool waits_for(ProxyRequest const& request) {
  return request.type == ProxyRequest::Type::get ||
         (request.type == ProxyRequest::Type::put && request.bytes > ProxyRequest::most_inline);
}

/// A notification alone, which fits 16 bytes.
MESHPOST_FN inline bool is_signal_only(ProxyRequest const& request) {
  return request.type == ProxyRequest::Type::put && request.bytes == 0 && request.counter &&
         request.sender && PackedSignal::fits(request.counter, request.sender);
}

// That the host finds all of it where it finds the flag rests on what devices and buses do with an
// aligned store of 16 bytes: it comes as one write of one cache line.
MESHPOST_FN inline void publish(PackedSignal& in_ring, PackedSignal const& count) {
#if defined(__CUDA_ARCH__)
  memory::fence(Order::system);
  u32 const words[] = {static_cast<u32>(count.address), static_cast<u32>(count.address >> 32),
                       count.number};
  memory::store_packet(&in_ring, words, count.ready);
#else
  in_ring.address = count.address;
  in_ring.number = count.number;
  memory::store(&in_ring.ready, count.ready, Order::system);
#endif
}

// Out of line: ranks in reach should not have to step over it.
MESHPOST_COLD inline void fill_record(RequestRing const& ring, Block block, ProxyRequest request) {
  u32 const mine = memory::fetch_add_device(ring.head, 1);
  // Whether there is room a GPU asks over the bus, so not each time.
  u32 tail = memory::load_acquire(ring.seen);
  for (u32 polls = 0; mine - tail >= RequestRing::capacity; ++polls) {
    block.yield();  // the proxy reads on
    // Or the run is over, and nobody reads what stands behind this place: the rank leaves at its
    // next look, with all its threads.
    if (polls % 256 == 1 && block.poisoned()) return;
    tail = memory::load_acquire(ring.tail);
    memory::store(ring.seen, tail, Order::device);
  }
  RequestRecord& record = ring.records[mine % RequestRing::capacity];
  if (is_signal_only(request)) {
    // Behind the fence there is only this store, so the fence waits for none over the bus.
    PackedSignal const signal{PackedSignal::pack_address(request.counter, request.sender),
                              request.rank, mine + 1};
    return publish(record.signal, signal);
  }
  record.signal.address = 0;
  record.request = request;
  if (request.type == ProxyRequest::Type::put && !request.waits && request.bytes != 0)
    memory::copy(record.data, request.source, request.bytes, 0, 1);
  memory::store(&record.signal.ready, mine + 1, Order::system);
}

/// The same for a rank, by one thread.
MESHPOST_FN inline void post_alone(Sender const& self, ProxyRequest const& request) {
  ProxyRequest whole = request;
  whole.rank = self.id_;
  whole.local_rank = self.local_id_;
  whole.waits = waits_for(request);
  fill_record(self.state_->requests, self.block_, whole);
}

/// A request with bytes that the host can't reach; by all threads. Returns how many requests the
/// rank has waited for.
MESHPOST_COLD inline u32 post_staged(RunState const& state, Block block, Operation operation,
                                     ProxyRequest const& request, u32 posted) {
  bool const gets = request.type == ProxyRequest::Type::get;
  char* const stage = state.requests.stages + u64{request.local_rank} * RequestRing::stage_bytes;
  u32 const thread = block.thread(), threads = block.threads();
  for (u64 at = 0; at < request.bytes; at += RequestRing::stage_bytes) {
    ProxyRequest piece = request;
    u64 const left = request.bytes - at;
    piece.bytes = left < RequestRing::stage_bytes ? left : RequestRing::stage_bytes;
    if (piece.bytes != left) piece.counter = piece.sender = nullptr;  // raised with the last
    piece.waits = true;
    char* const target = static_cast<char*>(request.target) + at;
    char const* const source = static_cast<char const*>(request.source) + at;
    if (gets) piece.target = stage, piece.source = source;
    else piece.target = target, piece.source = stage;
    block.sync();  // all are through with the stage
    if (!gets) memory::copy(stage, source, piece.bytes, thread, threads);
    block.sync();
    if (thread == 0) fill_record(state.requests, block, piece);
    block.await_out_of_line({&state.requests.done[request.local_rank], ++posted, WordType::counter,
                             Compare::greater_equal},
                            {operation, 0, 0, 0}, state.command_queue);
    if (gets) memory::copy(target, stage, piece.bytes, thread, threads);
  }
  block.sync();
  return posted;
}

/// Until the proxy has read the sources of all this rank's requests, or filled their targets.
MESHPOST_FN inline void await_posted(Sender const& self, Operation operation) {
  self.block_.await_out_of_line({&self.state_->requests.done[self.local_id_], self.posted_,
                                 WordType::counter, Compare::greater_equal},
                                {operation, 0, 0, 0}, self.state_->command_queue);
}

/// By all threads.
MESHPOST_FN inline void post(Sender& self, Operation operation, ProxyRequest const& request) {
  self.block_.sync();  // what the other threads did is complete
  if (waits_for(request) &&
      !memory::host_reaches(request.type == ProxyRequest::Type::get ? request.target
                                                                    : request.source)) {
    ProxyRequest whole = request;
    whole.rank = self.id_;
    whole.local_rank = self.local_id_;
    self.posted_ = post_staged(*self.state_, self.block_, operation, whole, self.posted_);
    return;
  }
  if (self.thread() == 0) post_alone(self, request);
  if (!waits_for(request)) return;
  ++self.posted_;
  await_posted(self, operation);
}

}  // namespace meshpost::via::proxy
