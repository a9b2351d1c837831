#pragma once
#include <functional>
#include <memory>
#include <string>

#include "meshpost/rma/delivery.hpp"

namespace meshpost {

struct DeliveryLedger {
  virtual ~DeliveryLedger() = default;
  /// The end of a run delivers everything. \throws Error(kernel_failed) if undelivered bytes were
  /// overwritten
  virtual void finish() = 0;
};

namespace detail {
/// `place` tells where an address lies: "window 'inbox' of rank 3 at element 0".
std::shared_ptr<DeliveryLedger> make_ledger(u32 ranks,
                                            std::function<std::string(void const*)> place);
}  // namespace detail
}  // namespace meshpost
