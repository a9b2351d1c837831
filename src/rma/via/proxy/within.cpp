// What ranks ask of devices of their own process: no network, and no check against one.
#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {

// Order: requests of all own devices wait in one queue, in the order in which they were taken from
// their rings, and are carried out in that order, as parcels of another process are. So order,
// delivery and release hold as between processes: whoever acquires a count has all that was taken
// before it for that device (Access::deliver).
//
// A request whose bytes a copy engine still reads holds up those behind it, also of other devices.
// It never waits for a rank: no rank is needed to read its bytes, nor to let go of memory that they
// pass through, and what comes to a device whose ranks open no letters is kept (MailboxAccess). So
// the queue always gets on, and a rank that waits for room in its ring gets it.
bool Proxy::carry_out_queued() {
  u32 const here = peers_.number();
  auto& queue = peers_of_net_[here].queue;
  bool any = false;
  while (!queue.empty() && queue.front()->ready) {
    auto const out = std::move(queue.front());
    queue.pop_front();  // before: a get adds its answer
    carry_out(here, out->parcel, {out->rest(), out->keep});
    any = true;
  }
  return any;
}

}  // namespace meshpost::detail
