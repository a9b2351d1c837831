#pragma once
#include <string>
#include <vector>

#include "environment.hpp"

namespace meshpost::launch {

/// What an agent must know to start processes. It comes by the agent's standard input: command
/// lines can be read by others, and each shell on the way would take them apart.
struct Orders {
  Job job;
  std::string folder;  ///< to start in; empty: where the agent is
  std::vector<std::string> command;
};

std::string pack(Orders const& orders);
/// \throws Error(bad_argument) for what is none
Orders unpack_orders(std::string const& text);

}  // namespace meshpost::launch
