#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshpost/base/fn.hpp"

namespace meshpost::launch {

/// The command line, read and checked.
struct Options {
  u32 processes = 1;
  u32 nodes = 0;  ///< pretended ones; 0: none
  bool label = true;
  std::optional<double> timeout;       ///< seconds
  std::string logs;                    ///< folder for a file of each process; empty: none
  std::vector<std::string> variables;  ///< NAME=VALUE, for every process
  std::vector<std::string> command;
};

/// Reads the command line into `options`. Returns an exit status if nothing is left to do: after
/// --help, or after an error message.
std::optional<int> parse(int argc, char** argv, Options& options);

}  // namespace meshpost::launch
