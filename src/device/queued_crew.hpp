#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost {

/// Of a kind of device that queues launches. A run counts as ended when its ranks have said so, a
/// little before its kernels have.
class QueuedCrew : public Crew {
 public:
  /// Returns when nothing that was launched with it goes on, and all that it stored is there.
  /// \throws Error if a device is broken
  virtual void come_to_rest() = 0;
};

}  // namespace meshpost
