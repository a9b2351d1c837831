#include "base/host_places.hpp"

#include <utility>

namespace meshpost::hooks {
namespace {
PlaceHook& place_hook() {
  static PlaceHook hook;
  return hook;
}
}  // namespace

void install_places(PlaceHook hook) {
  place_hook() = std::move(hook);
  places_installed.store(static_cast<bool>(place_hook()), std::memory_order_release);
}

void tell_place(std::string_view place) {
  if (places_installed.load(std::memory_order_acquire)) place_hook()(place);
}

}  // namespace meshpost::hooks
