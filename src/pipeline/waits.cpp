#include "pipeline/waits.hpp"

#include <mutex>
#include <unordered_set>
#include <utility>

#include "meshpost/base/error.hpp"

namespace meshpost::pipelining {
namespace {

std::mutex& waits_mutex() {
  static std::mutex one;
  return one;
}

// True if one of `awaited` is `self`, or waits for it directly or through others. A thread that has
// done its steps already is not waited for. A thread with a list waits inside a function. Its list
// is cleared, under the mutex held here, before the function returns and `done` grows. So every
// `done` on the path is current, and a cycle that is found is real.
bool leads_to(GroupThread const* self, std::vector<Awaited> const& awaited) {
  std::unordered_set<GroupThread const*> seen;
  std::vector<GroupThread const*> next;
  auto const add = [&](std::vector<Awaited> const& all) {
    for (auto const& one : all)
      if (one.thread->done.load(std::memory_order_acquire) < one.steps &&
          seen.insert(one.thread).second)
        next.push_back(one.thread);
  };
  add(awaited);
  while (!next.empty()) {
    auto const* const thread = next.back();
    next.pop_back();
    if (thread == self) return true;
    add(thread->waits_for);
  }
  return false;
}

}  // namespace

Waiting::Waiting(GroupThread* self, std::vector<Awaited> awaited, char const* operation)
    : self_(self) {
  if (!self_) return;
  std::scoped_lock const lock(waits_mutex());
  if (leads_to(self_, awaited))
    throw Error(Kind::misuse, operation,
                "a function of another group called it, and a thread of this group waits for that "
                "function to return: both would wait for ever",
                "step groups from outside their functions, or from functions of one group alone");
  self_->waits_for = std::move(awaited);
}

Waiting::~Waiting() {
  if (!self_) return;
  std::scoped_lock const lock(waits_mutex());
  self_->waits_for.clear();
}

}  // namespace meshpost::pipelining
