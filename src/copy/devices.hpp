#pragma once
#include <memory>
#include <vector>

#include "meshpost/device/backend.hpp"
#include "meshpost/fabric/machine.hpp"

namespace meshpost::copying {

/// The devices that copies know: those chosen, else opened now as MESHPOST_DEVICES says.
/// Thread-safe.
std::vector<std::shared_ptr<Device>> known_devices();

/// The machine with these devices, measured if it never was. Thread-safe, fast but for the first
/// time.
Machine const& known_machine();

/// Their kinds whose drivers know memory that the library did not allocate. Thread-safe, fast.
std::vector<Backend*> const& drivers();

/// Makes `to`'s memory usable by `from`, both of one kind, the first time that a copy joins the
/// two. Warns once if there is no such way. Thread-safe. \returns whether there is
bool join(Device& from, Device& to);

}  // namespace meshpost::copying
