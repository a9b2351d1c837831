#pragma once
#include <string>

#include "common/command.hpp"

namespace meshpost::apps {

struct StudyOptions : Common {
  std::string against = "auto";  ///< kind of Exchange, or "none"
  u32 repetitions = 20;
  std::string output;  ///< file for the result; empty: none
  std::string trace;   ///< file for the timeline of one more run of the one kernel
};

/// Adds the common options and those of a study.
void add_study(CLI::App& app, std::string const& name, StudyOptions& options,
               Meanings const& meanings);

}  // namespace meshpost::apps
