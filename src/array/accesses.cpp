// Which accesses may be live together, and whose memory they have.
#include <fmt/format.h>

#include <algorithm>

#include "array/coherence_state.hpp"
#include "array/turn.hpp"
#include "base/caught.hpp"
#include "base/host_hooks.hpp"
#include "meshpost/base/events.hpp"

namespace meshpost::detail {
namespace {

char const* verb(AccessMode mode) { return mode == AccessMode::read ? "read" : "write"; }

bool in_order_of_caller(AccessMode one, AccessMode other) {
  return one == AccessMode::read || other == AccessMode::read;
}

}  // namespace

LiveAccess LiveAccess::State::access(ContextPtr const& at, AccessMode mode,
                                     std::source_location where) {
  copying::check_caller("access to an array");
  free_buried();
  {
    Lock const lock(mutex);
    note_arrivals();
    bool const writes = mode != AccessMode::read;
    bool const busy =
        closed || (writes && (changing || std::ranges::any_of(replicas, [](auto& one) {
                                return one.arriving != nullptr;
                              })));
    auto* const home = find_home(at, mode);
    if (!busy && home && !excluding(home, mode)) return begin(at, home, mode, where);
  }
  Turn const turn(*this);
  Lock lock(mutex);
  for (;;) {
    note_arrivals();
    auto* const home = find_home(at, mode);
    if (auto const* const other = excluding(home, mode)) {
      wait_for(lock, *other, verb(mode), at, where);
      continue;
    }
    // A write would change the source of a prefetch, or be overwritten by one.
    if (mode != AccessMode::read) {
      auto const under_way =
          std::ranges::find_if(replicas, [](auto& one) { return one.arriving != nullptr; });
      if (under_way != replicas.end()) {
        wait_arrival(lock, *under_way, under_way->at == at && mode == AccessMode::write);
        continue;
      }
    }
    if (home) return begin(at, home, mode, where);
    if (auto* const arriving = arriving_for(*at)) {
      wait_arrival(lock, *arriving, true);
      continue;
    }
    bool const needs_contents = mode != AccessMode::write_only && size != 0;
    if (needs_contents && std::ranges::none_of(replicas, &Replica::valid))
      throw Error(Kind::misuse, operation(verb(mode), *at, where), "the array was never written",
                  "write it first, by write_only()");
    auto& target = own(at);
    if (size == 0) continue;
    if (!target.memory.data()) {
      allocate(lock, target);
      continue;  // other accesses may have begun meanwhile
    }
    // Those that begin during the copy shall find this one.
    entries.push_back({mode, at, &target, where});
    auto const entry = std::prev(entries.end());
    try {
      std::string source;
      bring(lock, target, true, source, where);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      entries.erase(entry);
      throw;
    }
    target.valid = true;
    if (mode != AccessMode::read) only_valid(&target);
    return LiveAccess(shared_from_this(), &*entry);
  }
}

LiveAccess LiveAccess::State::begin(ContextPtr const& at, Replica* home, AccessMode mode,
                                    std::source_location where) {
  entries.push_back({mode, at, home, where});
  if (mode != AccessMode::read) only_valid(home);
  return LiveAccess(shared_from_this(), &entries.back());
}

void LiveAccess::State::only_valid(Replica* replica) {
  for (auto& other : replicas) other.valid = &other == replica;
}

Replica* LiveAccess::State::find(ContextPtr const& at) {
  auto const found = std::ranges::find(replicas, at, &Replica::at);
  return found == replicas.end() ? nullptr : &*found;
}

Replica* LiveAccess::State::find_home(ContextPtr const& at, AccessMode mode) {
  auto* const mine = find(at);
  if (size == 0) return mine;  // without memory
  // Memory that live accesses have does not exclude them.
  if (mode != AccessMode::read)
    for (auto const& entry : entries)
      if (entry.home->valid && (entry.home == mine || at->can_use(*entry.home->at)))
        return entry.home;
  if (mine && mine->valid) return mine;
  for (auto& other : replicas)
    if (other.valid && at->can_use(*other.at)) return &other;
  if (mode != AccessMode::write_only) return nullptr;
  if (mine && mine->memory.data()) return mine;
  for (auto& other : replicas)
    if (other.memory.data() && at->can_use(*other.at)) return &other;
  return nullptr;
}

Replica* LiveAccess::State::arriving_for(Context const& at) {
  auto const found = std::ranges::find_if(replicas, [&](auto& one) {
    return one.arriving && (one.at.get() == &at || at.can_use(*one.at));
  });
  return found == replicas.end() ? nullptr : &*found;
}

LiveAccess::Entry* LiveAccess::State::excluding(Replica const* home, AccessMode mode) {
  entries.remove_if([](Entry const& entry) {
    try {
      return entry.after && entry.after->done();
    } catch (...) {  // its device failed: wait_for tells it, and removes the entry
      return false;
    }
  });
  for (auto& other : entries) {
    if (mode == AccessMode::read && other.mode == AccessMode::read) continue;
    // The caller orders live accesses. Work that ends with an event is still going on.
    if (home && other.home == home && !other.after && in_order_of_caller(mode, other.mode))
      continue;
    return &other;
  }
  return nullptr;
}

// `at` may be in an entry that goes meanwhile.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void LiveAccess::State::wait_for(Lock& lock, Entry const& other, char const* what, ContextPtr at,
                                 std::source_location where) {
  if (other.after) try {
      return wait_event(lock, std::shared_ptr<Event>(other.after));
    } catch (...) {
      throw caught(operation(what, *at, where));
    }
  throw Error(Kind::misuse, operation(what, *at, where),
              fmt::format("a {} access at {} is live, taken at {}", verb(other.mode),
                          other.at->name(), short_text(other.where)),
              "end it first, by release() or its destructor");
}

void LiveAccess::State::wait_event(Lock& lock, std::shared_ptr<Event> const& event) {
  auto const ended = [&] {
    lock.lock();
    entries.remove_if([&](Entry const& entry) { return entry.after == event; });
  };
  lock.unlock();
  try {
    event->wait();
  } catch (...) {  // the device failed: its work has ended
    ended();
    throw;
  }
  ended();
}

void LiveAccess::State::end(Entry* entry) noexcept {
  Lock const lock(mutex);
  entries.remove_if([&](Entry const& one) { return &one == entry; });
  bury_unused();
}

void LiveAccess::State::end_after(Entry* entry, std::shared_ptr<Event> event) noexcept {
  Lock const lock(mutex);
  entry->after = std::move(event);
  bury_unused();
}

void LiveAccess::State::bury_unused() noexcept {
  bool const live = std::ranges::any_of(entries, [](Entry const& one) { return !one.after; });
  if (orphan && !live) bury(std::move(replicas), std::move(entries));
}

u64 LiveAccess::State::elements() {
  Lock const lock(mutex);
  return size / element;
}

void LiveAccess::State::abandon() noexcept {
  free_buried();
  std::list<Replica> unused;  // freed without the mutexes
  std::list<Entry> ended;
  Turn const turn(*this, true);
  Lock lock(mutex);
  auto const wait = [&](auto const& pending, char const* what, Context const& at,
                        std::source_location where) {
    lock.unlock();
    try {
      hooks::at(what);
      pending->wait();
    } catch (...) {  // the device failed: its work has ended
      warn_of(what, at, where);
    }
    lock.lock();
  };
  for (auto& one : replicas)
    if (auto const arriving = std::exchange(one.arriving, nullptr))
      wait(arriving, "end a prefetch", *one.at, one.prefetch_where);
  for (;;) {
    auto const ending =
        std::ranges::find_if(entries, [](Entry& one) { return one.after != nullptr; });
    if (ending == entries.end()) break;
    ended.splice(ended.end(), entries, ending);
    wait(ending->after, "destroy", *ending->at, ending->where);
  }
  orphan = true;
  if (entries.empty()) unused = std::move(replicas);
}

bool LiveAccess::State::valid_at(ContextPtr const& at) {
  Lock const lock(mutex);
  note_arrivals();
  return size == 0 || find_home(at, AccessMode::read);
}

}  // namespace meshpost::detail
