#include "meshpost/array/context.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <new>

#include "copy/devices.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/fabric/allocate.hpp"

namespace meshpost {
namespace {

// For processes without devices: nobody can pin host memory then.
Allocation plain_memory(Bytes size) {
  constexpr std::align_val_t alignment{64};
  void* const memory = ::operator new(size, alignment, std::nothrow);
  if (!memory)
    throw Error(Kind::out_of_memory, fmt::format("allocate {} bytes of host memory", size.value),
                "the system has no more", "use smaller arrays, or a host with more memory");
  return {memory, size, [](void* data) { ::operator delete(data, alignment); }};
}

}  // namespace

bool Context::can_use(Context const& other) const {
  if (!other.reached_by_copies()) return false;
  if (place_.kind == "pageable") return in_host_memory(other.place_);
  if (place_.kind == "pinned") return other.place_.kind == "pinned";
  return place_ == other.place_;
}

Allocation Context::allocate(Bytes size) const {
  auto const devices = copying::known_devices();
  if (place_.on_host() && devices.empty()) return plain_memory(size);
  try {
    return allocate_at(place_, devices, size);
  } catch (Error const& error) {
    if (error.kind() != Kind::bad_argument) throw;
    std::string known;
    for (auto const& device : devices) known += (known.empty() ? "" : ", ") + device->name();
    throw Error(Kind::bad_argument, fmt::format("allocate at {}", name()),
                "copies know only the devices " + (known.empty() ? "(none)" : known),
                "use one of them, or name the device in MESHPOST_DEVICES or "
                "use_devices_for_copies");
  }
}

bool Context::can_copy(Context const&, Context const&) const { return false; }

void Context::copy(Context const& target, void*, Context const& source, void const*, Bytes) const {
  throw Error(Kind::misuse, fmt::format("copy from {} to {}", source.name(), target.name()),
              fmt::format("can_copy() of {} accepts it, but copy() is not overridden", name()),
              "override both, or neither");
}

ContextPtr context_at(Place const& place) {
  static auto* const mutex = new std::mutex;  // arrays may be used after main
  static auto* const all = new std::map<Place, ContextPtr>;
  std::scoped_lock const lock(*mutex);
  auto& context = (*all)[place];
  if (!context) context = std::make_shared<Context>(place);
  return context;
}

At::At(std::shared_ptr<Device> const& device) {
  if (!device)
    throw Error(Kind::bad_argument, "place of an access", "the device is null",
                "give one of open_devices or of a World");
  context_ = context_at({std::string(device->kind()), device->index()});
}

ContextPtr At::checked(ContextPtr context) {
  if (!context)
    throw Error(Kind::bad_argument, "place of an access", "the context is null",
                "give one of context_at or of your own");
  return context;
}

}  // namespace meshpost
