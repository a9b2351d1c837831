#include "rma/via/proxy/remote_heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "meshpost/base/events.hpp"
#include "meshpost/device/device.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {

void RemoteHeap::follow(net::Engine& engine) {
  u64 const size = heap_.size();
  if (size == size_) return;
  Growth growth{size_, size - size_, {}, {}, {}};
  growth.memories.resize(layout_.device_count());
  growth.in_host_memory.resize(layout_.device_count());
  auto const all =
      group_.gather("expose the symmetric heap", [&] { return expose(engine, growth); });
  group_.together("expose the symmetric heap", [&] {
    std::vector<wire::Unpacker> exposed(all.begin(), all.end());
    for (u32 device = 0; device < layout_.device_count(); ++device) {
      u32 const process = layout_.processes[device];
      auto const text = exposed[process].text();
      growth.in_host_memory[device] = exposed[process].value<u8>() != 0;
      if (!text.empty() && layout_.far_from(process))
        growth.memories[device] = engine.import(process, text);
    }
  });
  growths_.push_back(std::move(growth));
  size_ = size;
}

// For each own device a text, and a flag: the host reaches its memory. An empty text: it can't be
// written to, and is sent messages.
std::string RemoteHeap::expose(net::Engine& engine, Growth& growth) {
  wire::Packer packer;
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    bool const in_host_memory = layout_.devices[own]->in_host_memory();
    auto const text = expose(engine, own, growth.offset, growth.size);
    growth.readable.push_back(!in_host_memory && !text.empty());
    packer.text(text);
    packer.value<u8>(in_host_memory ? 1 : 0);
  }
  return packer.take();
}

std::string RemoteHeap::expose(net::Engine& engine, u32 own, u64 offset, u64 size) {
  auto const& device = *layout_.devices[own];
  char* const memory = heap_.at(layout_.first_device + own, offset);
  try {
    if (device.in_host_memory()) return engine.expose(memory, Bytes{size});
    if (engine.reaches(device.kind()))
      return engine.expose_device(memory, Bytes{size}, device.kind(), device.index());
  } catch (Error const& error) {
    if (!std::exchange(warned_, true))
      warn(fmt::format("{} can't write to windows of {}, so long puts go to them {}: {}",
                       engine.name(), device.name(),
                       device.in_host_memory()
                           ? "in messages, which takes about twice as long"
                           : "by way of the host's pinned memory, which takes longer",
                       error.what()));
  }
  return {};
}

RemoteHeap::Growth const* RemoteHeap::growth_at(u64 offset) const {
  auto const found = std::ranges::find_if(growths_, [&](Growth const& growth) {
    return offset >= growth.offset && offset - growth.offset < growth.size;
  });
  return found == growths_.end() ? nullptr : &*found;
}

std::optional<RemoteHeap::Target> RemoteHeap::find(u32 device, u64 offset) const {
  auto const* const growth = growth_at(offset);
  if (!growth || !growth->memories[device]) return std::nullopt;
  u64 const inside = offset - growth->offset;
  return Target{*growth->memories[device], inside, growth->size - inside,
                growth->in_host_memory[device]};
}

u64 RemoteHeap::readable(u32 own, u64 offset) const {
  auto const* const growth = growth_at(offset);
  return growth && growth->readable[own] ? growth->offset + growth->size - offset : 0;
}

}  // namespace meshpost::detail
