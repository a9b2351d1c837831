#pragma once
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost::net {

/// A slow way to the other processes that does not use the engine: what a channel has to say when
/// its messages get lost goes there. It loses nothing and keeps the order. Thread-safe; nothing
/// blocks. Notices to a process that is gone are dropped.
class OutOfBand {
 public:
  struct Notice {
    u32 from;
    std::string bytes;
  };
  virtual ~OutOfBand() = default;
  virtual void tell(u32 peer, std::string const& bytes) = 0;
  /// Notices that have come since the last call.
  virtual std::vector<Notice> take() = 0;
};

}  // namespace meshpost::net
