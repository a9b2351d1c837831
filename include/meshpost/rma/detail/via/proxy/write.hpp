#pragma once
#include "meshpost/device/strided_copy.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

// The way to ranks out of reach of loads and stores. Thread 0 writes a request into a ring, and the
// host's proxy (src/rma/via/proxy/proxy.cpp) carries it out.
//
// Order: thread 0 takes and publishes slots in program order, and the proxy empties slots in their
// order. Requests to one process arrive in the order in which they were taken. So requests are
// first in, first out for each pair of ranks. Publishing releases what this rank did before. So the
// proxy sees the source's bytes, and a rank that gets them sees what was stored before publish().
//
// A source may change when the operation returns, as in the direct protocol. A short one is copied
// into the request. For a longer one the rank waits until the proxy has read it.
//
// Sources and targets are any memory that the rank can load and store. On a GPU the host can't
// reach some of it, such as scratch(). A long put out of it, and a get into it, go in pieces by way
// of the rank's stage in the device's memory. All threads copy a piece. They meet before the
// request is published, and again behind the wait for it, so the stage is not written while it is
// read.

namespace meshpost::via::proxy {

MESHPOST_FN inline bool waits_for(Message const& message) {
  return message.type == Message::Type::get ||
         (message.type == Message::Type::put && message.bytes > Message::most_inline);
}

// A count alone, in one store. The host that finds the flag also finds the rest: this rests on how
// devices and buses do an aligned store of 16 bytes. It comes as one write of one cache line.
MESHPOST_FN inline void publish(Signal& in_ring, Signal const& count) {
#if defined(__CUDA_ARCH__)
  memory::fence(Order::system);
  u32 const words[] = {static_cast<u32>(count.counter), static_cast<u32>(count.counter >> 32),
                       count.origin};
  memory::store_packet(&in_ring, words, count.ready);
#else
  in_ring.counter = count.counter;
  in_ring.origin = count.origin;
  memory::store(&in_ring.ready, count.ready, Order::system);
#endif
}

// Out of line, to keep it out of the code for ranks in reach. By one thread.
MESHPOST_COLD inline void request(RequestRing const& ring, Block block, u32 local_rank,
                                  Message message) {
  u32 mine = 0, polls = 0;
  bool const has_slot = ring.claim(mine, [&] {
    block.yield();  // the proxy continues to read
    // Or the run is over, and nobody reads the slots behind this one. Then the rank leaves when it
    // next reads the poison, with all its threads.
    return polls++ % 256 != 1 || !block.poisoned();
  });
  if (!has_slot) return;
  RequestRecord& record = ring.at(mine);
  if (message.type == Message::Type::put && message.bytes == 0) {
    // Behind the fence there is only this store, so the fence waits for no store over the bus.
    message.signal.ready = RequestRing::flag_of(mine);
    return publish(record.message.signal, message.signal);
  }
  message.put_into(record.message);
  record.local_rank = local_rank;
  record.waits = waits_for(message) ? 1 : 0;
  if (message.type == Message::Type::put && record.waits == 0)
    memory::copy(record.data, reinterpret_cast<void const*>(message.own), message.bytes, 0, 1);
  ring.publish(mine);
}

/// A request with bytes that the host can't reach; by all threads. Returns how many requests the
/// rank has waited for.
MESHPOST_COLD inline u32 request_staged(RunState const& state, Block block, u32 local_rank,
                                        Operation operation, Message message, u32 posted) {
  bool const gets = message.type == Message::Type::get;
  char* const stage = state.requests.stages + u64{local_rank} * RequestRing::stage_bytes;
  u32 const thread = block.thread(), threads = block.threads();
  for (u64 at = 0; at < message.bytes; at += RequestRing::stage_bytes) {
    Message piece = message;
    u64 const left = message.bytes - at;
    piece.bytes = left < RequestRing::stage_bytes ? left : RequestRing::stage_bytes;
    if (piece.bytes != left) piece.signal = {};  // raised with the last
    piece.address += at;
    piece.own = reinterpret_cast<u64>(stage);
    char* const own = reinterpret_cast<char*>(message.own) + at;
    block.sync();  // no thread uses the stage any more
    if (!gets) memory::copy(stage, own, piece.bytes, thread, threads);
    block.sync();
    if (thread == 0) request(state.requests, block, local_rank, piece);
    // The last piece may be short. Then it is in the request, and the proxy tells nothing.
    if (waits_for(piece))
      block.await_out_of_line(
          {&state.requests.done[local_rank], ++posted, WordType::counter, Compare::greater_equal},
          {operation, 0, 0, 0}, state.command_queue);
    if (gets) memory::copy(own, stage, piece.bytes, thread, threads);
  }
  block.sync();
  return posted;
}

/// Waits until the proxy has read the sources of all this rank's requests, or filled their targets.
MESHPOST_FN inline void await_requests(Sender const& self, Operation operation) {
  self.block_.await_out_of_line({&self.state_->requests.done[self.local_id_], self.posted_,
                                 WordType::counter, Compare::greater_equal},
                                {operation, 0, 0, 0}, self.state_->command_queue);
}

/// By all threads.
MESHPOST_FN inline void request(Sender& self, Operation operation, Message const& message) {
  self.block_.sync();  // stores of the other threads are complete
  bool const waits = waits_for(message);
  if (waits && !memory::host_reaches(reinterpret_cast<void const*>(message.own))) {
    self.posted_ =
        request_staged(*self.state_, self.block_, self.local_id_, operation, message, self.posted_);
    return;
  }
  if (self.thread() == 0) request(self.state_->requests, self.block_, self.local_id_, message);
  if (!waits) return;
  ++self.posted_;
  await_requests(self, operation);
}

MESHPOST_FN inline Message put_of(void* target, void const* source, u64 bytes, Signal count = {}) {
  return {.signal = count,
          .address = reinterpret_cast<u64>(target),
          .bytes = bytes,
          .own = reinterpret_cast<u64>(source)};
}

/// By all threads. `count`, if any, is raised when the bytes are there.
MESHPOST_FN inline void write(Sender& self, Operation operation, void* target, void const* source,
                              u64 bytes, Signal count = {}) {
  if (bytes == 0 && !count.any()) return;
  request(self, operation, put_of(target, source, bytes, count));
}

/// A strided put, run by run; by all threads. The rank waits once, for all of them. Short runs that
/// lie side by side at the target share requests, each with as many as it can hold.
MESHPOST_FN inline void write(Sender& self, Operation operation, StridedCopy const& copy) {
  RequestRing const& ring = self.state_->requests;
  if (copy.run > Message::most_inline) {
    if (!memory::host_reaches(copy.source))
      return copy.each_run([&](char* target, char const* source) {
        write(self, operation, target, source, copy.run);
      });
    if (self.thread() == 0)
      copy.each_run([&](char* target, char const* source) {
        request(ring, self.block_, self.local_id_, put_of(target, source, copy.run));
      });
    self.posted_ += static_cast<u32>(copy.runs());
    await_requests(self, operation);
    return;
  }
  if (self.thread() != 0) return;
  char packed[Message::most_inline];
  Message message = put_of(nullptr, packed, 0);
  auto const send = [&] {
    if (message.bytes != 0) request(ring, self.block_, self.local_id_, message);
  };
  copy.each_run([&](char* target, char const* source) {
    bool const follows = target == message.target() + message.bytes;
    if (!follows || message.bytes + copy.run > Message::most_inline) {
      send();
      message.address = reinterpret_cast<u64>(target);
      message.bytes = 0;
    }
    memory::copy(packed + message.bytes, source, copy.run, 0, 1);
    message.bytes += copy.run;
  });
  send();
}

}  // namespace meshpost::via::proxy
