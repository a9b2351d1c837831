// Brings arrays up to date: memory, sources, copies.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "array/coherence_state.hpp"
#include "array/turn.hpp"
#include "base/caught.hpp"
#include "base/host_hooks.hpp"
#include "copy/devices.hpp"
#include "copy/request.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/copy/route.hpp"

namespace meshpost::detail {
namespace {

using copying::StatePtr;

struct End {
  Context const& at;
  void* data;
};

bool has_way(Context const& target, Context const& source) {
  return target.can_copy(target, source) || source.can_copy(target, source) ||
         (target.reached_by_copies() && source.reached_by_copies());
}

// The target's context comes first, as in LAMA.
StatePtr copy_bytes(End const& to, End const& from, Bytes size, bool wait,
                    std::source_location where) {
  hooks::at("copy an array");
  for (auto const* const maker : {&to.at, &from.at})
    if (maker->can_copy(to.at, from.at)) {
      maker->copy(to.at, to.data, from.at, from.data, size);
      return copying::finished();
    }
  if (wait) {
    copy(to.data, from.data, size, where);
    return copying::finished();
  }
  PitchedCopy rows;
  rows.target = to.data, rows.source = from.data, rows.width = size;
  return copying::start(copying::check_request(rows));
}

// Seconds of a copy, or, for small ones, an order that needs no measured machine.
double cost(Context const& source, Context const& target, Bytes size) {
  if (size < least_routed)
    return source.place().kind == "pinned" ? 0 : source.place().on_host() ? 2 : 1;
  auto const& machine = copying::known_machine();
  if (!machine.find(source.place()) || !machine.find(target.place()))
    return std::numeric_limits<double>::max();
  return plan_route(machine, source.place(), target.place(), size).predicted;
}

// Contexts are the user's: what they return is checked.
Allocation memory_at(Context const& at, Bytes size, std::string const& title) {
  hooks::at("allocate memory of an array");
  auto memory = at.allocate(size);
  auto const operation =
      fmt::format("allocate {} bytes at {} for {}", size.value, at.name(), title);
  if (!memory.data())
    throw Error(Kind::out_of_memory, operation, "allocate() of this context returned no memory",
                "use smaller arrays, or let it throw an Error that says why");
  if (memory.size() < size)
    throw Error(
        Kind::bad_argument, operation,
        fmt::format("allocate() of this context returned only {} bytes", memory.size().value),
        "override it so that it returns as many as it is asked for");
  return memory;
}

bool over(StatePtr const& copy) {
  hooks::at("ask whether a prefetch is done");
  return copy->done();
}
bool under_way(StatePtr const& copy) {
  try {
    return !over(copy);
  } catch (...) {  // a device failed
    return false;
  }
}

}  // namespace

Replica& LiveAccess::State::own(ContextPtr const& at) {
  if (auto* const found = find(at)) return *found;
  return replicas.emplace_back(Replica{at});
}

void LiveAccess::State::allocate(Lock& lock, Replica& replica) {
  auto const bytes = size;
  lock.unlock();
  auto memory = memory_at(*replica.at, bytes, title());
  lock.lock();
  replica.memory = std::move(memory);
}

Replica& LiveAccess::State::best_source(Lock& lock, Replica const& target) {
  std::vector<Replica*> sources;
  for (auto& one : replicas)
    if (one.valid && has_way(*target.at, *one.at)) sources.push_back(&one);
  if (sources.empty())  // only by way of the host
    for (auto& one : replicas)
      if (one.valid) return one;
  if (sources.size() == 1) return *sources.front();
  auto const bytes = size;
  lock.unlock();  // the machine may have to be measured
  std::vector<double> costs;
  costs.reserve(sources.size());
  for (auto const* const one : sources) costs.push_back(cost(*one->at, *target.at, bytes));
  lock.lock();
  return *sources[static_cast<size_t>(std::ranges::min_element(costs) - costs.begin())];
}

StatePtr LiveAccess::State::bring(Lock& lock, Replica& target, bool wait, std::string& source_name,
                                  std::source_location where) {
  auto* source = &best_source(lock, target);
  if (!has_way(*target.at, *source->at)) {
    auto& host = own(At().context());
    if (&host == &target || &host == source || !has_way(*host.at, *source->at) ||
        !has_way(*target.at, *host.at))
      throw Error(
          Kind::no_route,
          fmt::format("copy of {} from {} to {}", title(), source->at->name(), target.at->name()),
          "neither context copies between them, nor from and to the host",
          "override can_copy() and copy() of one of them");
    if (host.arriving) wait_arrival(lock, host, false);  // two copies would write there
    if (!host.valid) {
      if (!host.memory.data()) allocate(lock, host);
      bring(lock, host, true, source_name, where);
      host.valid = true;
    }
    source = &host;
  }
  End const to{*target.at, target.memory.data()}, from{*source->at, source->memory.data()};
  auto const bytes = size;
  source_name = from.at.name();
  lock.unlock();
  auto state = copy_bytes(to, from, bytes, wait, where);
  if (wait) hooks::at("an array was copied");
  lock.lock();
  if (!wait) return state;
  note_copy(source_name, to.at.name(), bytes);
  return nullptr;
}

void LiveAccess::State::note_copy(std::string const& source, std::string const& target,
                                  Bytes bytes) {
  auto& [copies, total] = counts[{source, target}];
  ++copies;
  total += bytes;
}

void LiveAccess::State::note_arrivals() {
  for (auto& one : replicas)
    if (one.arriving) try {
        if (!over(one.arriving)) continue;
        hooks::at("end a prefetch");
        one.arriving->wait();
        arrived(one);
      } catch (...) {  // of over() too, if a device failed
        continue;      // it is told to the next access there
      }
}

void LiveAccess::State::arrived(Replica& replica) {
  replica.arriving = nullptr;
  replica.valid = true;
  note_copy(replica.arriving_from, replica.at->name(), size);
}

void LiveAccess::State::wait_arrival(Lock& lock, Replica& replica, bool report) {
  auto const state = replica.arriving;
  lock.unlock();
  std::optional<Error> error;
  try {
    hooks::at("end a prefetch");
    state->wait();
  } catch (...) {
    error = caught(operation("prefetch", *replica.at, replica.prefetch_where));
  }
  lock.lock();
  if (replica.arriving != state) return;  // another thread has noted that it arrived
  if (!error) return arrived(replica);
  replica.arriving = nullptr;
  if (report) throw *error;
  lock.unlock();  // the sink of warnings may ask this array
  warn(fmt::format("{}: {}", operation("prefetch", *replica.at, replica.prefetch_where),
                   error->what()));
  lock.lock();
}

void LiveAccess::State::wait_arrivals(Lock& lock) {
  for (auto& one : replicas)
    if (one.arriving) wait_arrival(lock, one, false);
}

std::shared_ptr<Event> LiveAccess::State::prefetch(ContextPtr const& at,
                                                   std::source_location where) {
  copying::check_caller("prefetch of an array");
  free_buried();
  Turn const turn(*this);
  Lock lock(mutex);
  for (;;) {
    note_arrivals();
    auto* const home = find_home(at, AccessMode::read);
    if (auto const* const other = excluding(home, AccessMode::read)) {
      wait_for(lock, *other, "prefetch", at, where);
      continue;
    }
    if (home || size == 0) return copying::finished()->event();
    if (auto* const arriving = arriving_for(*at)) {
      if (auto const state = arriving->arriving; under_way(state)) {
        lock.unlock();
        return state->event();
      }
      wait_arrival(lock, *arriving, true);  // it failed
      continue;
    }
    if (std::ranges::none_of(replicas, &Replica::valid))
      throw Error(Kind::misuse, operation("prefetch", *at, where), "the array was never written",
                  "write it first, by write_only()");
    auto& target = own(at);
    if (!target.memory.data()) {
      allocate(lock, target);
      continue;
    }
    std::string source;
    auto const state = target.arriving = bring(lock, target, false, source, where);
    target.arriving_from = source;
    target.prefetch_where = where;
    lock.unlock();
    return state->event();
  }
}

void LiveAccess::State::drop(ContextPtr const& at, std::source_location where) {
  copying::check_caller("drop memory of an array");
  free_buried();
  std::list<Replica> unused;  // freed without the mutex
  Turn const turn(*this, true);
  Lock lock(mutex);
  wait_arrivals(lock);
  auto* const mine = find(at);
  if (!mine) return;
  for (;;) {
    auto const user = std::ranges::find(entries, mine, &Entry::home);
    if (user == entries.end()) break;
    wait_for(lock, *user, "drop", at, where);
  }
  auto const valid = std::ranges::count_if(replicas, &Replica::valid);
  if (size != 0 && mine->valid && valid == 1)
    throw Error(Kind::misuse, operation("drop", *at, where),
                "no other place has the contents of the array",
                "bring it up to date elsewhere first, by prefetch(), or use resize(0, discard)");
  auto const found = std::ranges::find_if(replicas, [&](auto& one) { return &one == mine; });
  unused.splice(unused.end(), replicas, found);
  lock.unlock();
}

void LiveAccess::State::resize(u64 count, Contents contents, std::source_location where) {
  copying::check_caller("resize of an array");
  auto const bytes = bytes_of(count);
  free_buried();
  std::vector<Allocation> unused;
  Turn const turn(*this, true);
  Lock lock(mutex);
  wait_arrivals(lock);
  while (!entries.empty()) wait_for(lock, entries.front(), "resize", entries.front().at, where);
  auto const fits = [&](Replica const& one) { return one.memory.size() >= bytes; };
  bool const keeps =
      contents == Contents::keep && size != 0 && std::ranges::any_of(replicas, &Replica::valid);
  Replica* moved = nullptr;
  if (keeps && std::ranges::none_of(replicas, [&](auto& one) { return one.valid && fits(one); })) {
    moved = &*std::ranges::find_if(replicas, &Replica::valid);
    auto const old = size;
    lock.unlock();  // nothing changes meanwhile: the array is closed
    auto larger = memory_at(*moved->at, bytes, title());
    if (!has_way(*moved->at, *moved->at))
      throw Error(Kind::no_route, operation("resize", *moved->at, where),
                  "this context doesn't copy within its memory",
                  "read the array at the host first, or discard the contents");
    copy_bytes({*moved->at, larger.data()}, {*moved->at, moved->memory.data()}, old, true, where);
    hooks::at("an array was copied");
    lock.lock();
    note_copy(moved->at->name(), moved->at->name(), old);
    std::swap(moved->memory, larger);
    unused.push_back(std::move(larger));
  }
  for (auto& one : replicas) {
    if (!keeps) one.valid = false;
    if (fits(one)) continue;
    one.valid = false;
    unused.push_back(std::exchange(one.memory, Allocation()));
  }
  size = bytes;
  lock.unlock();
}

}  // namespace meshpost::detail
