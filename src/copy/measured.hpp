#pragma once
#include <optional>
#include <string>

#include "meshpost/copy/route.hpp"

namespace meshpost::copying {

/// A route's places in words, "pinned:0 > cuda:1 > cuda:0 | pinned:0 > cuda:0": the same in every
/// machine that has these places.
std::string describe(Machine const& machine, Route const& route);

/// Stores the speed of a copy by this route. Thread-safe.
void remember(std::string const& route, u64 bytes, double seconds);
/// Bytes/s of the last copy of about that size (within a factor of two). Thread-safe.
std::optional<double> remembered(std::string const& route, u64 bytes);

}  // namespace meshpost::copying
