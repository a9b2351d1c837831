#pragma once
#include <meshpost/rma/world.hpp>

#include <nlohmann/json.hpp>
#include <string>

#include "measure.hpp"
#include "options.hpp"

namespace pingpong {

/// The facts that all figures share. Prints the devices.
nlohmann::json facts_of(Options const& options, meshpost::World const& world);
nlohmann::json json_of(Times const& times);
/// A bar on standard error.
void show_progress(u32 done, u32 all);
/// "64 KiB".
std::string size_name(u64 bytes);

}  // namespace pingpong
