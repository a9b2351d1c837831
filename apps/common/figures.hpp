#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "common/files.hpp"

namespace meshpost::apps {

/// Writes the figures. The file appears when it is complete. \throws std::runtime_error naming it
inline void write_figures(std::string const& file, nlohmann::json const& figures) {
  write_text(file, figures.dump(1) + "\n");
}

}  // namespace meshpost::apps
