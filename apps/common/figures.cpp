#include "common/figures.hpp"

#include <nlohmann/json.hpp>

namespace meshpost::apps {

void write_figures(std::string const& file, nlohmann::json const& figures) {
  write_text(file, figures.dump(1) + "\n");
}

}  // namespace meshpost::apps
