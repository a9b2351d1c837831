#pragma once
#include <memory>
#include <vector>

#include "meshpost/device/backend.hpp"
#include "meshpost/fabric/machine.hpp"

namespace meshpost::copying {

/// The devices that copies know: those chosen. If none were chosen, it opens those of
/// MESHPOST_DEVICES. Thread-safe.
std::vector<std::shared_ptr<Device>> known_devices();

/// The machine with these devices, measured if it never was. Thread-safe; fast except the first
/// time.
Machine const& known_machine();

/// The kinds of these devices whose drivers know memory that the library did not allocate.
/// Thread-safe, fast.
std::vector<Backend*> const& drivers();

/// Makes `to`'s memory usable by `from`, both of one kind, the first time that a copy joins the
/// two. Warns once if that is impossible. Thread-safe. \returns true if it is usable
bool join(Device& from, Device& to);

}  // namespace meshpost::copying
