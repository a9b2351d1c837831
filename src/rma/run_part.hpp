#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/rma/run.hpp"
#include "rma/council.hpp"

namespace meshpost::detail {

/// What a process brings to the end of a run, when the ranks of all have ended. A plain value.
struct RunPart {
  Reason reason = Reason::finished;
  std::optional<Error> error{};                ///< of a device, or of the launch
  std::vector<Leftover> leftovers{};           ///< at own ranks
  std::vector<std::vector<double>> timings{};  ///< of own devices
  std::string evidence{};  ///< packed Evidence, unless it finished or has an error

  std::string pack() const;
  static RunPart unpack(std::string_view bytes);
};

}  // namespace meshpost::detail
