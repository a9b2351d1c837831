#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/rma/run.hpp"
#include "rma/runs/supervising/termination.hpp"

namespace meshpost::detail {

/// A process's part in the result of a run, when the ranks of all processes have ended. A plain
/// value.
struct RunPart {
  Reason reason = Reason::finished;
  std::optional<Error> error{};                ///< of a device, or of the launch
  std::vector<Unconsumed> unconsumed{};        ///< at own ranks, most_unconsumed at most
  u64 unconsumed_left_out = 0;                 ///< the rest of them
  std::vector<std::vector<double>> timings{};  ///< of own devices
  std::string failed_state{};  ///< packed FailedRunState, unless the run finished or has an error

  // Some MB, of perhaps tens of millions: they go to all processes in one message.
  static constexpr u64 most_unconsumed = 100'000;

  std::string pack() const;
  static RunPart unpack(std::string_view bytes);
};

}  // namespace meshpost::detail
