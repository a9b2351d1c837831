#pragma once
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost::net {

/// A slow way to the other processes that does not use the engine: what a channel has to say when
/// its messages get lost goes there. It loses nothing and keeps the order. Thread-safe; nothing
/// blocks. What is told to a process that is gone is dropped.
class OutOfBand {
 public:
  struct Notice {
    u32 from;
    std::string bytes;
  };
  virtual ~OutOfBand() = default;
  /// \throws Error(peer_lost) if this way does not exist any more, so nobody is told
  virtual void tell(u32 peer, std::string const& bytes) = 0;
  /// What has come since the last call.
  virtual std::vector<Notice> take() = 0;
};

}  // namespace meshpost::net
