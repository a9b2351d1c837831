#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

namespace meshpost::via::direct {

/// Stores a word, whole, behind all that this rank has put there. Behind a meeting of the rank's
/// threads; all of them call it.
template <class T>
MESHPOST_FN void store(Sender& self, Location const& to, T* word, T value) {
  if (self.thread() == 0) {
    if (delivery::checked(self.state_->ledger))
      delivery::put_value(self.state_->ledger, self.id_, to.rank, word);
    memory::store(word, value, self.order_to(to));
  }
  self.block_.rejoin();
  self.stored_at(to);  // the word itself
}

}  // namespace meshpost::via::direct
