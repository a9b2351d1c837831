#pragma once
#include "meshpost/rma/detail/via/direct/raise.hpp"
#include "meshpost/rma/detail/via/direct/read.hpp"
#include "meshpost/rma/detail/via/direct/store.hpp"
#include "meshpost/rma/detail/via/direct/write.hpp"
#include "meshpost/rma/detail/via/lane/read.hpp"
#include "meshpost/rma/detail/via/lane/write.hpp"
#include "meshpost/rma/detail/via/proxy/raise.hpp"
#include "meshpost/rma/detail/via/proxy/read.hpp"
#include "meshpost/rma/detail/via/proxy/store.hpp"
#include "meshpost/rma/detail/via/proxy/write.hpp"

// The way to a rank is chosen here, and nowhere else. Direct: by loads and stores. By a lane: short
// messages in reach, if there is room. By the host's proxy: ranks out of reach of loads and stores.
//
// All of a rank's threads call these functions, unless a comment says otherwise.

namespace meshpost::via {

MESHPOST_FN inline bool is_far(RunState const& state, u32 device) {
  return state.requests.records != nullptr && state.requests.far[device] != 0;
}

/// True if each of `ranks` ranks, on so many devices, tells all these devices of its arrival
/// itself, instead of the last one of each device (barrier.hpp). All their adds are to one word of
/// each device, so with more than `most` ranks they take longer than a way by the last one. (On two
/// H200s a barrier of 128 ranks took 2.50 us instead of 2.80, and one of 264 ranks 3.68 instead of
/// 2.92.)
MESHPOST_FN inline bool each_rank_tells(RunState const& state, u32 devices, u32 ranks,
                                        u32 most = 128) {
  constexpr u32 most_devices = 4;
  return memory::on_gpu && devices <= most_devices && ranks <= most &&
         state.requests.records == nullptr;
}

/// A rank's counter for a tag, in the form for the proxy.
MESHPOST_FN inline Signal signal_of(Sender const& self, Location const& to, Tag tag) {
  return Signal::of(to.counters + tag.value, u64{to.counter_part} * WindowInfo::raised_by,
                    WindowInfo::raiser(self.id_));
}

MESHPOST_FN inline void write(Sender& self, Operation operation, Location const& to, void* target,
                              void const* source, u64 bytes) {
  if (to.far) [[unlikely]]
    return proxy::write(self, operation, target, source, bytes);
  direct::write(self, to, target, source, bytes);
}
MESHPOST_FN inline void write(Sender& self, Operation operation, Location const& to,
                              StridedCopy const& copy) {
  if (to.far) return proxy::write(self, operation, copy);
  direct::write(self, to, copy);
}
/// To memory of a device that is no target of a put, such as a gathering area. The source may
/// change when it returns.
MESHPOST_FN inline void write(Sender& self, Operation operation, u32 device, void* target,
                              void const* source, u64 bytes) {
  if (is_far(*self.state_, device)) {
    proxy::write(self, operation, target, source, bytes);
    if (bytes > Message::most_inline) proxy::await_requests(self, operation);
    return;
  }
  memory::copy(target, source, bytes, self.thread(), self.threads());
}

/// Sends a short message in reach by a lane; it may be a notification alone. Returns true if it was
/// sent.
MESHPOST_FN inline bool write_by_lane(Sender& self, Location const& to, void* target,
                                      void const* source, u64 bytes, Location const& counters,
                                      Tag tag) {
  if (bytes >= self.lane_limit_ || to.far) return false;  // lane_limit_ is 0 if there are no lanes
  if (memory::on_gpu && to.near) return false;            // no gain
  return lane::write(self, to, target, source, bytes, counters, tag);
}

/// Sends bytes and the notification behind them as one message. Returns false if that is not
/// possible; the caller then sends both direct, one after the other. `counters`: of the same rank,
/// maybe in another window.
MESHPOST_FN inline bool write_and_raise(Sender& self, Operation operation, Location const& to,
                                        void* target, void const* source, u64 bytes,
                                        Location const& counters, Tag tag) {
  if (to.far) [[unlikely]] {
    Block& block = self.block_;
    if (!block.step(hooks::Step::put_copy) || !block.step(hooks::Step::notify_raise)) return false;
    proxy::write(self, operation, target, source, bytes, signal_of(self, counters, tag));
    return true;
  }
  return write_by_lane(self, to, target, source, bytes, counters, tag);
}

MESHPOST_FN inline void raise(Sender& self, Operation operation, Location const& to, Tag tag) {
  if (to.far) [[unlikely]]
    return proxy::raise(self, operation, signal_of(self, to, tag));
  direct::raise(self, to, to.counters + tag.value);
}
/// Adds to a word of a device, by one thread, behind its fence; by the proxy to the lower 4 bytes.
template <class Word>
MESHPOST_FN void raise(RunState const& state, Block block, u32 device, Word* word, Word by) {
  if (is_far(state, device)) proxy::raise(state, block, word, static_cast<u32>(by));
  else memory::add(word, by, Order::none);
}

template <class T>
MESHPOST_FN void store(Sender& self, Operation operation, Location const& to, T* word, T value) {
  if (to.far) [[unlikely]]
    return proxy::store(self, operation, word, value);
  direct::store(self, to, word, value);
}

/// Waits until the sources of all writes may change.
MESHPOST_FN inline void flush(Sender const& self) {
  if (self.state_->requests.records != nullptr) [[unlikely]]
    proxy::await_requests(self, Operation::flush);
}

MESHPOST_FN inline void read(Sender& self, Operation operation, Location const& from, void* target,
                             void const* source, u64 bytes) {
  if (from.far) return proxy::read(self, operation, target, source, bytes);
  direct::read(self, target, source, bytes);
}

}  // namespace meshpost::via
