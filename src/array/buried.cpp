// Memory of destroyed arrays, until it can be freed.
#include <algorithm>

#include "array/coherence_state.hpp"

namespace meshpost::detail {
namespace {

struct Buried {
  std::mutex mutex;
  std::list<Replica> replicas;
  std::list<LiveAccess::Entry> entries;

  void add(std::list<Replica>& more, std::list<LiveAccess::Entry>& their) {
    std::scoped_lock const lock(mutex);
    replicas.splice(replicas.end(), more);
    entries.splice(entries.end(), their);
  }
};

Buried& buried() {
  static auto* const one = new Buried;  // accesses may end after main
  return *one;
}

// True also if its device failed: its work has ended then.
bool has_ended(Event& event) noexcept {
  try {
    return event.done();
  } catch (...) {
    return true;
  }
}

}  // namespace

// Allocates nothing, since nobody could be told that it failed.
void bury(std::list<Replica> replicas, std::list<LiveAccess::Entry> entries) noexcept {
  buried().add(replicas, entries);
}

void free_buried() noexcept {
  std::list<Replica> replicas, kept;
  std::list<LiveAccess::Entry> entries;
  {
    std::scoped_lock const lock(buried().mutex);
    replicas.swap(buried().replicas);
    entries.swap(buried().entries);
  }
  // Events and memory are the user's too: no mutex is held.
  entries.remove_if([](auto const& entry) { return has_ended(*entry.after); });
  for (auto one = replicas.begin(); one != replicas.end();) {
    auto const next = std::next(one);
    if (std::ranges::find(entries, &*one, &LiveAccess::Entry::home) != entries.end())
      kept.splice(kept.end(), replicas, one);
    one = next;
  }
  buried().add(kept, entries);
}

}  // namespace meshpost::detail
