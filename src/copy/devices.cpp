#include "copy/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>

#include "copy/state.hpp"
#include "meshpost/base/config.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/copy/copy.hpp"

namespace meshpost {
namespace copying {
namespace {

struct Chosen {
  std::mutex mutex;
  std::vector<std::shared_ptr<Device>> devices;
  std::deque<std::vector<Backend*>> kinds;  // of all choices: a thread may still read old ones
  std::atomic<std::vector<Backend*> const*> drivers{nullptr};  // the last of them; null: none yet
  std::atomic<Machine const*> machine{nullptr};                // null: not needed since the choice
  std::map<std::pair<Device*, Device*>, bool> joined;
};

Chosen& chosen() {
  static auto* const one = new Chosen;  // copies may be made after main
  return *one;
}

void choose(std::vector<std::shared_ptr<Device>> const& given) {  // under the mutex
  auto devices = physical_devices(given);
  auto& kinds = chosen().kinds.emplace_back();
  for (auto const& device : devices) {
    auto* const kind = &backend(device->kind());
    if (!device->in_host_memory() && std::ranges::find(kinds, kind) == kinds.end())
      kinds.push_back(kind);
  }
  chosen().devices = std::move(devices);
  chosen().machine = nullptr;
  chosen().drivers.store(&kinds, std::memory_order_release);
}

}  // namespace

std::vector<std::shared_ptr<Device>> known_devices() {
  std::scoped_lock const lock(chosen().mutex);
  if (!chosen().drivers.load()) {
    auto const wanted = Config::from_environment().devices;
    choose(wanted == "none" ? std::vector<std::shared_ptr<Device>>{} : open_devices(wanted));
  }
  return chosen().devices;
}

std::vector<Backend*> const& drivers() {
  auto const* found = chosen().drivers.load(std::memory_order_acquire);
  if (!found) {
    known_devices();
    found = chosen().drivers.load(std::memory_order_acquire);
  }
  return *found;
}

Machine const& known_machine() {
  if (auto const* const known = chosen().machine.load(std::memory_order_acquire)) return *known;
  auto const devices = known_devices();
  auto const& machine = this_machine(devices);  // may take long: without the mutex
  std::scoped_lock const lock(chosen().mutex);
  if (chosen().devices == devices) chosen().machine.store(&machine, std::memory_order_release);
  return machine;
}

bool join(Device& from, Device& to) {
  std::scoped_lock const lock(chosen().mutex);
  auto const [at, first] = chosen().joined.try_emplace({&from, &to}, false);
  if (!first) return at->second;
  if (from.kind() == to.kind()) try {
      auto& kind = backend(from.kind());
      kind.connect({kind.open(from.index()), kind.open(to.index())});
      return at->second = true;
    } catch (Error const& error) {
      warn(fmt::format(
          "copies from {} to {} go through host memory, at a tenth of the speed or less: "
          "{}; choose GPUs that reach each other (nvidia-smi topo -p2p r shows them)",
          from.name(), to.name(), error.cause()));
    }
  return false;
}

}  // namespace copying

void use_devices_for_copies(std::vector<std::shared_ptr<Device>> const& devices) {
  copying::check_caller("use_devices_for_copies");
  if (devices.empty())
    throw Error(Kind::bad_argument, "use_devices_for_copies", "no device was given",
                "give those of open_devices or of a World");
  for (auto const& device : devices)
    if (!device)
      throw Error(Kind::bad_argument, "use_devices_for_copies", "one device is null",
                  "give those of open_devices or of a World");
  std::scoped_lock const lock(copying::chosen().mutex);
  copying::choose(devices);
}

}  // namespace meshpost
