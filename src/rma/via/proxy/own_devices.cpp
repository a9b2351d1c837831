#include "rma/via/proxy/own_devices.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/host_hooks.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::detail {

void OwnDevices::make() {
  for (u32 number = 0; number < layout_.own_count(); ++number) {
    auto const& device = layout_.devices[number];
    std::vector<u8> far(layout_.device_count());
    for (u32 other = 0; other < far.size(); ++other)
      far[other] = layout_.far(number, other) ? 1 : 0;
    Own own;
    own.records =
        device->allocate(Bytes{RequestRing::capacity * sizeof(RequestRecord)}, MemoryKind::pinned);
    own.bytes = device->allocate(Bytes{decltype(RequestRing::bytes)::size}, MemoryKind::pinned);
    own.words = device->allocate(Bytes{256}, MemoryKind::device);
    own.tail = device->allocate(Bytes{256}, MemoryKind::pinned);
    own.done = device->allocate(Bytes{layout_.ranks_per_device * sizeof(u32)}, MemoryKind::pinned);
    own.far = device->allocate(Bytes{far.size()}, MemoryKind::device);
    device->write(own.far.data(), far.data(), Bytes{far.size()});
    if (!device->in_host_memory())
      own.stages = device->allocate(Bytes{layout_.ranks_per_device * RequestRing::stage_bytes},
                                    MemoryKind::device);
    auto& ring = own.ring;
    ring.records = own.records.as<RequestRecord>(), ring.tail = own.tail.as<u32>();
    ring.bytes = {own.bytes.as<char>()};
    ring.head = own.words.as<u32>(), ring.seen = ring.head + 32;  // in another cache line
    ring.done = own.done.as<u32>(), ring.far = own.far.as<u8>();
    ring.stages = own.stages.as<char>();
    own.access = make_access(*device);
    own_.push_back(std::move(own));
  }
}

void OwnDevices::begin_run() {
  if (!in_order_) begin_anew();
  // In each run, ranks count their answered requests from 0.
  for (auto const& own : own_) std::memset(own.done.data(), 0, own.done.size());
  std::scoped_lock const lock(of_ranks_);
  withdrawn_ = false;
}

// Before the first run, and behind one that failed. Its ranks may have taken places in a ring that
// they never filled, and left commands half carried out. Behind a run that went well the numbers of
// slots and commands continue, because nothing is left in them.
void OwnDevices::begin_anew() {
  for (u32 i = 0; i < own_.size(); ++i) {
    auto& own = own_[i];
    own.taken = 0;
    std::memset(own.records.data(), 0, own.records.size());
    std::memset(own.tail.data(), 0, own.tail.size());
    layout_.devices[i]->fill(own.words.data(), 0, own.words.size());
    own.access->begin();
  }
  in_order_ = true;
}

void OwnDevices::end_run(bool well) {
  in_order_ = false;          // in case this throws
  std::exception_ptr failed;  // of one device: the others still end the run
  for (auto const& own : own_) try {
      hooks::at("part from a device");
      if (well) own.access->end();
      else own.access->drop();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  if (failed) std::rethrow_exception(failed);
  in_order_ = well;
}

void OwnDevices::drop() {
  for (auto const& own : own_) own.access->drop();
}

RequestRecord const* OwnDevices::next(u32 number) const {
  auto const& own = own_[number];
  return own.ring.is_whole(own.taken) ? &own.ring.at(own.taken) : nullptr;
}

void OwnDevices::pass(u32 number) { own_[number].ring.tell(++own_[number].taken); }

bool OwnDevices::rings_are_empty() const {
  return std::ranges::none_of(
      own_, [](Own const& own) { return own.ring.is_whole(memory::load_acquire(own.ring.tail)); });
}

// Proxy::abandon() drops everything that this blocks: bytes that are not read any more are never
// sent, nor is anything behind them.
void OwnDevices::withdraw() {
  std::scoped_lock const lock(of_ranks_);
  withdrawn_ = true;
}

}  // namespace meshpost::detail
