#pragma once
#include "meshpost/rma/rank.hpp"

namespace meshpost {

/// An operation on the timeline, from its construction to its destruction. Does nothing if no
/// timeline is recorded.
class Rank::Traced {
 public:
  MESHPOST_FN Traced(Rank const& self, Operation operation, u32 peer = Note::no_rank,
                     u32 window = 0, u32 tag = 0, u64 bytes = 0) {
    if (self.traced_ != 0) [[unlikely]]
      event_ = begin(self.state_->trace, self.thread(), self.local_id_, operation, peer, window,
                     tag, bytes);
  }
  MESHPOST_FN ~Traced() {
    if (event_) [[unlikely]]
      end(event_);
  }
  /// A rank's first event is its own life, because before it no rank could compute. By one
  /// thread.
  MESHPOST_COLD static void life(TraceBuffer buffer, u32 local_rank, bool ends) {
    u64 const now = memory::clock_ns();
    if (ends) {
      buffer.events[static_cast<u64>(local_rank) * buffer.capacity].end = now;
      return;
    }
    buffer.begin(local_rank);
    if (auto* const event = buffer.add(local_rank))
      *event = {.begin = now,
                .end = 0,
                .operation = Operation::kernel,
                .peer = Note::no_rank,
                .tag = 0,
                .window = 0,
                .bytes = 0,
                .name = {}};
  }
  Traced(Traced const&) = delete;
  Traced& operator=(Traced const&) = delete;

 private:
  // Out of line: a kernel whose timeline is not recorded should not contain this code.
  MESHPOST_COLD static TraceEvent* begin(TraceBuffer buffer, u32 thread, u32 local_rank,
                                         Operation operation, u32 peer, u32 window, u32 tag,
                                         u64 bytes) {
    auto* const event = thread == 0 ? buffer.add(local_rank) : nullptr;
    if (event)
      *event = {.begin = memory::clock_ns(),
                .end = 0,
                .operation = operation,
                .peer = peer,
                .tag = tag,
                .window = window,
                .bytes = bytes,
                .name = {}};
    return event;
  }
  MESHPOST_COLD static void end(TraceEvent* event) { event->end = memory::clock_ns(); }

  TraceEvent* event_ = nullptr;
};

MESHPOST_FN inline void Rank::trace_life(bool ends) const {
  if (traced_ != 0 && thread() == 0) [[unlikely]]
    Traced::life(state_->trace, local_id_, ends);
}

}  // namespace meshpost
