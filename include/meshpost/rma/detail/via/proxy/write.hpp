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
// A source that fits is copied to the request, by the first warp: over the bus, in stores that
// nobody waits for. The warp meets before thread 0 publishes the request. A longer source is read
// by the proxy. If it lies in a window, the rank goes on; flush() waits for that. The proxy counts
// what it has read, not in which order. So a rank waits for all its requests at once. Other memory
// may end with the rank, also when it throws. So the rank waits at once until it has been read.
//
// Sources and targets are any memory that the rank can load and store. On a GPU the host can't
// reach some of it, such as scratch(). A long put out of it, and a get into it, go in pieces by way
// of the rank's stage in the device's memory. All threads copy a piece. They meet before the
// request is published, and again behind the wait for it, so the stage is not written while it is
// read.

namespace meshpost::via::proxy {

/// True if the proxy tells the rank when it has read the source, or filled the target.
MESHPOST_FN inline bool is_answered(Message const& message) {
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

/// True if the source goes with the request.
MESHPOST_FN inline bool carries(Message const& message) {
  return message.type == Message::Type::put && message.bytes != 0 && !is_answered(message);
}

/// A place in the ring, by one thread. False: the rank leaves when it next reads the poison, with
/// all its threads.
MESHPOST_FN inline bool claim(RequestRing const& ring, Block block, u32& number) {
  u32 polls = 0;
  return ring.claim(number, [&] {
    block.yield();  // the proxy continues to read
    // Or the run is over, and nobody reads the slots behind this one.
    return polls++ % 256 != 1 || !block.poisoned();
  });
}

// Out of line for a few registers less.
MESHPOST_COLD inline void publish(RequestRing const& ring, u32 number, Message message,
                                  u32 local_rank) {
  RequestRecord& record = ring.at(number);
  if (message.type == Message::Type::put && message.bytes == 0) {
    // Behind the fence there is only this store, so the fence waits for no store over the bus.
    message.signal.ready = RequestRing::flag_of(number);
    return publish(record.message.signal, message.signal);
  }
  message.put_into(record.message);
  record.local_rank = local_rank;
  record.waits = is_answered(message) ? 1 : 0;
  ring.publish(number);
}

// Out of line, to keep it out of the code for ranks in reach. By one thread.
MESHPOST_COLD inline void request(RequestRing const& ring, Block block, u32 local_rank,
                                  Message message) {
  u32 number = 0;
  if (claim(ring, block, number)) publish(ring, number, message, local_rank);
}

/// A place for a put that carries its source, by a team: its number, which all of the team get.
/// False: there was none, as for claim().
MESHPOST_FN inline bool claim_together(RequestRing const& ring, Block block, Team team,
                                       u32& number) {
  bool const has_place = team.first() && claim(ring, block, number);
  if (!team.any(has_place)) return false;
  number = team.from_first(number);
  team.sync();  // the others write behind what the first has acquired: the place was read
  return true;
}

/// A put of runs of a strided source, from the run with this number on; by a team. False: as above.
MESHPOST_COLD inline bool request_runs(RequestRing const& ring, Block block, u32 local_rank,
                                       StridedCopy const& copy, u64 first, u64 runs, Team team) {
  u32 number = 0;
  if (!claim_together(ring, block, team, number)) return false;
  char* const bytes = ring.bytes.of(number);
  if (runs == 1) {
    memory::copy(bytes, copy.source_of(first), copy.run, team.thread, team.threads);
  } else {
    for (u64 i = team.thread; i < runs; i += team.threads)
      memory::copy(bytes + i * copy.run, copy.source_of(first + i), copy.run, 0, 1);
  }
  team.sync();
  if (team.first())
    publish(ring, number,
            {.address = reinterpret_cast<u64>(copy.target_of(first)), .bytes = runs * copy.run},
            local_rank);
  return true;
}

/// A put that carries its source; by a team. Not as one run of a StridedCopy, which would take
/// stack and registers in every kernel that puts.
MESHPOST_COLD inline void request_with_source(RequestRing const& ring, Block block, u32 local_rank,
                                              Message message, Team team) {
  u32 number = 0;
  if (!claim_together(ring, block, team, number)) return;
  memory::copy(ring.bytes.of(number), reinterpret_cast<void const*>(message.own), message.bytes,
               team.thread, team.threads);
  team.sync();
  if (team.first()) publish(ring, number, message, local_rank);
}

/// Any request, by all threads. Those that don't belong to the team go on at once.
MESHPOST_FN inline void request_by_all(RequestRing const& ring, Block block, u32 local_rank,
                                       Message const& message) {
  if (!carries(message)) {
    if (block.thread() == 0) request(ring, block, local_rank, message);
  } else if (Team const team = block.team(); team.has_me()) {
    request_with_source(ring, block, local_rank, message, team);
  }
}

/// A request with bytes that the host can't reach; by all threads. Returns how many answered
/// requests the rank has made.
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
    request_by_all(state.requests, block, local_rank, piece);
    // The last piece may be short. Then it is in the request, and the proxy tells nothing.
    if (is_answered(piece))
      block.await_out_of_line(
          {&state.requests.done[local_rank], ++posted, WordType::counter, Compare::greater_equal},
          {operation, 0, 0, 0}, state.command_queue);
    if (gets) memory::copy(own, stage, piece.bytes, thread, threads);
  }
  block.sync();
  return posted;
}

/// Waits until the proxy has read the sources of all this rank's requests, and filled their
/// targets. By all threads.
MESHPOST_FN inline void await_requests(Sender const& self, Operation operation) {
  if (self.posted_ == 0) return;
  self.block_.await_out_of_line({&self.state_->requests.done[self.local_id_], self.posted_,
                                 WordType::counter, Compare::greater_equal},
                                {operation, 0, 0, 0}, self.state_->command_queue);
}

/// True if the memory is of a window of the rank's device: it lives as long as the run.
MESHPOST_FN inline bool in_window(Sender const& self, void const* address) {
  char const* const heap = self.state_->heap + self.state_->device * self.stride_;
  return static_cast<u64>(static_cast<char const*>(address) - heap) < self.stride_;
}

/// By all threads.
MESHPOST_FN inline void request(Sender& self, Operation operation, Message const& message) {
  self.block_.sync();  // stores of the other threads are complete
  bool const answered = is_answered(message);
  if (answered && !memory::host_reaches(reinterpret_cast<void const*>(message.own))) {
    self.posted_ =
        request_staged(*self.state_, self.block_, self.local_id_, operation, message, self.posted_);
    return;
  }
  request_by_all(self.state_->requests, self.block_, self.local_id_, message);
  if (!answered) return;
  ++self.posted_;
  if (message.type == Message::Type::get ||
      !in_window(self, reinterpret_cast<void const*>(message.own)))
    await_requests(self, operation);
}

MESHPOST_FN inline Message put_of(void* target, void const* source, u64 bytes, Signal count = {}) {
  return {.signal = count,
          .address = reinterpret_cast<u64>(target),
          .bytes = bytes,
          .own = reinterpret_cast<u64>(source)};
}

/// By all threads. `count`, if any, is raised when the bytes are there. The source must not change
/// before await_requests().
MESHPOST_FN inline void write(Sender& self, Operation operation, void* target, void const* source,
                              u64 bytes, Signal count = {}) {
  if (bytes == 0 && !count.any()) return;
  request(self, operation, put_of(target, source, bytes, count));
}

/// A strided put; by all threads. The proxy reads runs that don't fit into requests, as above.
/// Others share requests if they lie side by side at the target, each with as many as fit.
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
    if (!in_window(self, copy.source)) await_requests(self, operation);
    return;
  }
  Team const team = self.block_.team();
  if (copy.run == 0 || !team.has_me()) return;
  u64 const following = copy.runs_side_by_side(), fit = Message::most_inline / copy.run;
  for (u64 first = 0; first < copy.runs(); first += following)
    for (u64 at = 0; at < following; at += fit) {
      u64 const runs = following - at < fit ? following - at : fit;
      if (!request_runs(ring, self.block_, self.local_id_, copy, first + at, runs, team)) return;
    }
}

}  // namespace meshpost::via::proxy
