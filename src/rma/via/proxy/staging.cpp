#include "rma/via/proxy/staging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "meshpost/base/events.hpp"
#include "rma/via/proxy/parcel.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {
// A text, how many slots each process has, and where its first one is, for each process.
std::string Staging::offer(net::Engine& engine, Peers const& peers) {
  std::vector<u32> writers;
  for (u32 process = 0; process < peers.count(); ++process)
    if (layout_.far_from(process)) writers.push_back(process);
  auto const device = std::ranges::find_if_not(layout_.devices, &Device::in_host_memory);
  u64 const fit = most_memory / slot_bytes / std::max<u64>(writers.size(), 1);
  u32 slots = device == layout_.devices.end() || writers.empty() || fit == 0
                  ? 0
                  : static_cast<u32>(std::bit_floor(std::min<u64>(most_slots, fit)));
  std::string text;
  u64 const size = writers.size() * slots * slot_bytes;
  if (size != 0) try {
      memory_ = (*device)->allocate(Bytes{size}, MemoryKind::pinned);
      text = engine.expose(memory_.data(), Bytes{size});
    } catch (Error const& error) {
      text.clear();
      warn(fmt::format(
          "{} can't write to the host's memory beside {}, so long puts go there in messages, which "
          "takes a multiple of the time: {}",
          engine.name(), (*device)->name(), error.what()));
    }
  if (text.empty()) slots = 0;
  wire::Packer packer;
  packer.text(text);
  packer.value(slots);
  for (u32 process = 0, at = 0; process < peers.count(); ++process) {
    bool const writes = slots != 0 && layout_.far_from(process);
    packer.value<u64>(at * slot_bytes);
    if (!writes) continue;
    peers_[process].ours = {.memory = memory_.as<char>() + at * slot_bytes,
                            .slots = slots,
                            .let_go = std::vector<bool>(slots)};
    at += slots;
  }
  return packer.take();
}

void Staging::join(net::Engine& engine, Peers const& peers) {
  auto const offers =
      peers.gather("offer memory to write to", [&] { return offer(engine, peers); });
  peers.together("offer memory to write to", [&] {
    for (u32 process = 0; process < peers.count(); ++process) {
      wire::Unpacker unpacker(offers[process]);
      auto const text = unpacker.text();
      auto const slots = unpacker.value<u32>();
      u64 offset = 0;
      for (u32 i = 0; i <= peers.number(); ++i) offset = unpacker.value<u64>();
      if (!text.empty() && layout_.far_from(process))
        peers_[process].theirs = {
            .memory = engine.import(process, text), .offset = offset, .slots = slots};
    }
  });
}

std::optional<RemoteHeap::Target> Staging::next(u32 process) const {
  auto const& theirs = peers_[process].theirs;
  if (theirs.begun - theirs.freed == theirs.slots) return std::nullopt;
  u64 const slot = theirs.begun % theirs.slots;
  return RemoteHeap::Target{theirs.memory, theirs.offset + slot * slot_bytes, slot_bytes};
}

u32 Staging::begin(u32 process) {
  auto& theirs = peers_[process].theirs;
  return theirs.begun++ % theirs.slots;
}

void Staging::freed(u32 process, u32 count) {
  auto& theirs = peers_[process].theirs;
  if (static_cast<i32>(count - theirs.freed) <= 0) return;
  if (count - theirs.freed > theirs.begun - theirs.freed)
    refuse_parcel(fmt::format("it let go of {} slots of which {} were written",
                              count - theirs.freed, theirs.begun - theirs.freed));
  theirs.freed = count;
}

Payload Staging::take(u32 process, u32 slot, u64 bytes) {
  auto& ours = peers_[process].ours;
  if (ours.slots == 0 || slot != ours.taken % ours.slots || bytes > slot_bytes ||
      ours.taken - ours.freed == ours.slots)
    refuse_parcel(fmt::format("it is a parcel of {} bytes in slot {}, of {}, where they can't be",
                              bytes, slot, ours.slots));
  ++ours.taken;
  char const* const memory = ours.memory + slot * slot_bytes;
  return {{memory, bytes}, {memory, [&ours, slot](void const*) { let_go(ours, slot); }}};
}

// Devices may end their copies in another order than that of the slots.
void Staging::let_go(Ours& ours, u32 slot) {
  ours.let_go[slot] = true;
  for (; ours.freed != ours.taken && ours.let_go[ours.freed % ours.slots]; ++ours.freed)
    ours.let_go[ours.freed % ours.slots] = false;
}

bool Staging::news(u32 process) const {
  auto const& ours = peers_[process].ours;
  return ours.slots != 0 && 2 * (ours.freed - ours.told) >= ours.slots;
}

}  // namespace meshpost::detail
