#pragma once
#include <functional>

#include "meshpost/base/error.hpp"
#include "meshpost/trace/wait_report.hpp"

namespace meshpost::detail {

/// Names for the numbers in reports.
struct Names {
  std::string kernel;
  std::function<std::string(u32 rank)> rank;      ///< "rank 3 (cpu:0)"
  std::function<std::string(u32 number)> window;  ///< "window 'inbox'"; empty: the user has none
};

/// Why a rank ended itself, from its report.
Error to_error(RankReport const& report, u32 rank, Names const& names);

}  // namespace meshpost::detail
