#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/files.hpp"

namespace meshpost::apps {

/// Writes the figures. The file appears when it is complete. \throws std::runtime_error naming it
void write_figures(std::string const& file, nlohmann::json const& figures);

}  // namespace meshpost::apps
