#include "rma/remote_heap.hpp"

#include <fmt/format.h>

#include <utility>

#include "meshpost/base/events.hpp"
#include "meshpost/device/device.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {

void RemoteHeap::follow(net::Engine& engine) {
  u64 const size = heap_.size();
  if (size == size_) return;
  Growth growth{size_, size - size_, {}};
  growth.memories.resize(layout_.device_count());
  auto const all =
      peers_.exchange("expose the symmetric heap", expose(engine, growth.offset, growth.size));
  peers_.together("expose the symmetric heap", [&] {
    std::vector<wire::Unpacker> exposed(all.begin(), all.end());
    for (u32 device = 0; device < layout_.device_count(); ++device) {
      u32 const process = layout_.processes[device];
      auto const text = exposed[process].text();
      if (!text.empty() && layout_.far_from(process))
        growth.memories[device] = engine.import(process, text);
    }
  });
  growths_.push_back(std::move(growth));
  size_ = size;
}

// A text for each own device; an empty one: it can't be written to, and is sent messages.
std::string RemoteHeap::expose(net::Engine& engine, u64 offset, u64 size) {
  wire::Packer texts;
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    std::string text;
    if (layout_.devices[own]->in_host_memory()) try {
        text = engine.expose(heap_.at(layout_.first_device + own, offset), Bytes{size});
      } catch (Error const& error) {
        if (!std::exchange(warned_, true))
          event_sink()->warning(fmt::format(
              "{} can't write to this process's windows, so long puts go to them in messages, "
              "which takes about twice as long: {}",
              engine.name(), error.what()));
      }
    texts.text(text);
  }
  return texts.take();
}

std::optional<RemoteHeap::Target> RemoteHeap::find(u32 device, u64 offset) const {
  for (auto const& growth : growths_) {
    if (offset < growth.offset || offset - growth.offset >= growth.size) continue;
    auto const& memory = growth.memories[device];
    if (!memory) return std::nullopt;
    u64 const inside = offset - growth.offset;
    return Target{*memory, inside, growth.size - inside};
  }
  return std::nullopt;
}

}  // namespace meshpost::detail
