#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

// write.hpp has the argument why the target sees the bytes once it has seen the count.

namespace meshpost::via::direct {

// On GPUs with lanes ranks of a device raise words of their own: they send nothing by lane, so
// nobody who sees their counts has to look there (lane.hpp, 7).
MESHPOST_FN inline u32* raised_by(Sender const& self, Location const& to, u32* counter) {
  return memory::on_gpu && self.uses_lanes() && to.near
             ? to.beside(counter, WindowInfo::near_counts)
             : counter;
}

/// Behind a meeting of the rank's threads; by all of them.
MESHPOST_FN inline void raise(Sender& self, Location const& to, u32* counter) {
  if (self.thread() == 0) {
    if (delivery::checked(self.state_->ledger))
      delivery::notify(self.state_->ledger, self.block_, self.id_, to.rank, counter);
    memory::add(raised_by(self, to, counter), 1, self.order_to(to));
    // Who raised it last: if nobody ever does again, the report can name that rank. Nothing depends
    // on its order.
    memory::store_relaxed(to.beside(counter, WindowInfo::raised_by), WindowInfo::raiser(self.id_));
  }
  // What goes by lane later must not be seen before this count.
  if (!to.near) {
    self.unfenced_ = self.may_have_lane(to.rank);
    self.brings_ |= self.unfenced_;
  }
}

}  // namespace meshpost::via::direct
