#pragma once
#include "meshpost/rma/rank.hpp"

namespace meshpost {

/// An operation on the timeline, from its construction to its destruction; nothing if none is recorded.
class Rank::Traced {
 public:
  MESHPOST_FN Traced(Rank const& self, Operation operation, u32 peer = Note::no_rank, u32 window = 0, u32 tag = 0,
                     u64 bytes = 0) {
    if (!self.state_->trace.events || self.thread() != 0) return;
    event_ = self.state_->trace.add(self.local_id_);
    if (event_) *event_ = {memory::clock_ns(), 0, operation, peer, tag, window, bytes, {}};
  }
  MESHPOST_FN ~Traced() {
    if (event_) event_->end = memory::clock_ns();
  }
  Traced(Traced const&) = delete;
  Traced& operator=(Traced const&) = delete;

 private:
  TraceEvent* event_ = nullptr;
};

}  // namespace meshpost
