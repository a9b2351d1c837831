#pragma once
#include <atomic>
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost::pipelining {

struct GroupThread;

/// A thread that another one waits for, until it is through with so many steps.
struct Awaited {
  GroupThread const* thread = nullptr;
  u64 steps = 0;  ///< from the first on; all that there can be: until it ends
};

/// A thread of a device group, as far as others wait for it and it for others.
struct GroupThread {
  std::atomic<u64> done{0};        ///< steps, in all; dropped ones count
  std::vector<Awaited> waits_for;  ///< guarded by the mutex of all Waiting
};

/// While it lives, the thread `self` waits for these, all of them. A thread inside a group's
/// function gets no further while it waits, so threads that wait for each other in a circle do so
/// for ever: the one that would close the circle is refused.
///
/// Called by: any thread. One that is of no group, `self` null, is never waited for and costs
/// nothing.
class Waiting {
 public:
  /// \throws Error(misuse), in the words of `operation`
  Waiting(GroupThread* self, std::vector<Awaited> awaited, char const* operation);
  ~Waiting();
  Waiting(Waiting const&) = delete;
  Waiting& operator=(Waiting const&) = delete;

 private:
  GroupThread* const self_;
};

}  // namespace meshpost::pipelining
