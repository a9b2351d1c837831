#include "copy/chain.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "copy/devices.hpp"
#include "copy/staging.hpp"
#include "fabric/host_copy.hpp"

namespace meshpost::copying {
namespace {

constexpr u32 chunks_at_once = 4;  // chunks of a chain in progress

// The carrier of a chunk along one link: a stream of a device or, if null, this thread with the
// host's threads.
struct Hop {
  std::unique_ptr<LentStream> stream;
  u32 to = 0;  // place
};

// A chunk in progress.
struct Slot {
  std::vector<char*> at;  // its buffers, one for each place between the ends
  Share::Piece piece{};
  u64 next_hop = 0;
  std::shared_ptr<Event> arrived;  // of the last hop; null if the host made that
};

// The source's device if both ends are devices: it writes to a peer as fast as the peer would read.
Device& engine_of(Machine const& machine, Link const& link) {
  auto* const from = device_of(machine.places[link.from].place);
  auto* const to = device_of(machine.places[link.to].place);
  auto* const engine = from && !(to && from->in_host_memory()) ? from : to;
  if (!engine)
    throw Error(Kind::bad_argument, "copy by a route",
                "a link lists a device's engine between two host memories",
                "measure the machine again (meshpost-topo)");
  return *engine;
}

class Runner {
 public:
  Runner(Machine const& machine, Chain const& chain, Request const& request, Share& share)
      : request_(request), share_(share), chunk_(std::max<u64>(chain.chunk, 1)) {
    for (u32 const l : chain.links) {
      auto const& link = machine.links.at(l);
      Hop hop;
      hop.to = link.to;
      if (link.mover != Mover::host_threads) {
        hop.stream = std::make_unique<LentStream>(engine_of(machine, link));
      }
      hops_.push_back(std::move(hop));
    }
    std::map<u32, u64> between;  // places in order, so that buffers are taken in order
    for (u64 h = 0; h + 1 < hops_.size(); ++h) between[hops_[h].to] = h;
    slots_.resize(chunks_at_once);
    for (auto& slot : slots_) slot.at.resize(hops_.size() - 1), slot.next_hop = hops_.size();
    for (auto const& [place, h] : between) {
      buffers_.push_back(std::make_unique<Buffers>(machine.places[place].place,
                                                   std::bit_ceil(chunk_), chunks_at_once));
      for (u32 s = 0; s < chunks_at_once; ++s) slots_[s].at[h] = (*buffers_.back())[s];
    }
  }

  void run() {
    u64 turn = 0;
    for (;; ++turn) {
      auto& slot = slots_[turn % chunks_at_once];
      finish(slot);
      slot.piece = share_.claim(chunk_);
      if (slot.piece.size == 0) break;
      slot.next_hop = 0;
      advance(slot, Until::waits);
    }
    for (u64 i = 1; i < chunks_at_once; ++i)
      finish(slots_[(turn + i) % chunks_at_once]);  // the oldest first
  }

  // After an error: returns when the devices no longer use the buffers and the two ends.
  void abandon() noexcept {
    for (auto& hop : hops_)
      if (hop.stream) try {
          (*hop.stream)->synchronize();
        } catch (Error const&) {
          continue;  // the first error is the one that is reported
        }
  }

 private:
  enum class Until { waits, end };

  char* place_before(Slot const& slot, u64 hop) const {
    if (hop > 0) return slot.at[hop - 1];
    return const_cast<char*>(static_cast<char const*>(request_.rows.source)) + slot.piece.offset;
  }
  char* place_after(Slot const& slot, u64 hop) const {
    if (hop + 1 < hops_.size()) return slot.at[hop];
    return static_cast<char*>(request_.rows.target) + slot.piece.offset;
  }

  // Moves a chunk on, to the end or until this thread would have to wait for a device.
  void advance(Slot& slot, Until until) {
    for (; slot.next_hop < hops_.size(); ++slot.next_hop) {
      u64 const h = slot.next_hop;
      auto const& hop = hops_[h];
      Bytes const size{slot.piece.size};
      if (hop.stream) {
        if (slot.arrived) (*hop.stream)->wait(slot.arrived);
        (*hop.stream)->copy(place_after(slot, h), place_before(slot, h), size);
        slot.arrived = (*hop.stream)->record();
        continue;
      }
      if (slot.arrived) {
        if (until == Until::waits) return;
        slot.arrived->wait();
        slot.arrived = nullptr;
      }
      fabric::ThreadTeam::shared().copy(place_after(slot, h), place_before(slot, h), size);
    }
  }
  void finish(Slot& slot) {
    advance(slot, Until::end);
    if (slot.arrived) slot.arrived->wait();
    slot.arrived = nullptr;
  }

  Request const& request_;
  Share& share_;
  u64 chunk_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::vector<Hop> hops_;
  std::vector<Slot> slots_;
};

}  // namespace

void run_chain(Machine const& machine, Chain const& chain, Request const& request, Share& share) {
  Runner runner(machine, chain, request, share);
  try {
    runner.run();
  } catch (...) {
    share.stop();
    runner.abandon();
    throw;
  }
}

}  // namespace meshpost::copying
