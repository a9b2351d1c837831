#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

// write.hpp has the argument why a target that has seen the count sees the bytes.

namespace meshpost::via::direct {

// On GPUs with lanes, ranks of a device raise separate words. They send nothing by lane to each
// other. So a rank that sees their counts need not look there (lane.hpp, 7).
MESHPOST_FN inline u32* raised_by(Sender const& self, Location const& to, u32* counter) {
  return memory::on_gpu && self.uses_lanes() && to.near
             ? to.beside(counter, WindowInfo::near_counts)
             : counter;
}

/// The part of thread 0.
MESHPOST_FN inline void raise_alone(Sender& self, Location const& to, u32* counter) {
  if (delivery::checked(self.state_->ledger))
    delivery::notify(self.state_->ledger, self.block_, self.id_, to.rank, counter);
  memory::add(raised_by(self, to, counter), 1, self.order_to(to));
  // The last raiser: if no further count comes, the report can name that rank. Nothing depends on
  // its order.
  memory::store_relaxed(to.beside(counter, WindowInfo::raised_by), WindowInfo::raiser(self.id_));
}

/// Behind a meeting of the rank's threads; all of them call it.
MESHPOST_FN inline void raise(Sender& self, Location const& to, u32* counter) {
  if (self.thread() == 0) raise_alone(self, to, counter);
  self.block_.rejoin();
  // Messages that go by lane later must not be seen before this count.
  if (!to.near) {
    self.unfenced_ = self.may_have_lane(to.rank);
    self.brings_ |= self.unfenced_;
  }
}

}  // namespace meshpost::via::direct
