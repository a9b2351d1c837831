#pragma once
#include <atomic>
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost::pipelining {

struct GroupThread;

/// A thread that another one waits for, until it has done so many steps.
struct Awaited {
  GroupThread const* thread = nullptr;
  u64 steps = 0;  ///< counted from the first; the maximum: until it ends
};

/// A thread of a device group: the state that others need to wait for it, and its own waits.
struct GroupThread {
  std::atomic<u64> done{0};        ///< steps in all; dropped ones count
  std::vector<Awaited> waits_for;  ///< guarded by the mutex of all Waiting
};

/// While it lives, the thread `self` waits for all of these. A thread inside a group's function
/// does not continue while it waits. So threads that wait for each other in a circle would wait for
/// ever. The one that would close the circle is refused.
///
/// Called by: any thread. One that belongs to no group has a null `self`. It is never waited for,
/// and costs nothing.
class Waiting {
 public:
  /// \throws Error(misuse) that names `operation`
  Waiting(GroupThread* self, std::vector<Awaited> awaited, char const* operation);
  ~Waiting();
  Waiting(Waiting const&) = delete;
  Waiting& operator=(Waiting const&) = delete;

 private:
  GroupThread* const self_;
};

}  // namespace meshpost::pipelining
