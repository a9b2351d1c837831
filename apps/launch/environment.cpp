#include "environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace meshpost::launch {
namespace {

constexpr std::array<std::string_view, 7> names{
    "MESHPOST_PROCESS", "MESHPOST_PROCESSES", "MESHPOST_RENDEZVOUS", "MESHPOST_LISTENER",
    "MESHPOST_SECRET",  "MESHPOST_LAUNCHER",  "MESHPOST_NODE"};

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

bool is_of_the_job(std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

u32 node_of(Job const& job, u32 process) { return process * job.nodes / job.processes; }

std::vector<std::string> child_environment(std::vector<std::string> const& inherited,
                                           Job const& job, Process process) {
  std::vector<std::string> all;
  auto const set = [&](std::string const& variable) {
    std::erase_if(all, [&](auto const& one) { return name_of(one) == name_of(variable); });
    all.push_back(variable);
  };
  for (auto const& variable : inherited)
    if (!is_of_the_job(name_of(variable))) all.push_back(variable);
  for (auto const& variable : job.variables) set(variable);
  all.push_back(fmt::format("MESHPOST_PROCESS={}", process.number));
  all.push_back(fmt::format("MESHPOST_PROCESSES={}", job.processes));
  all.push_back("MESHPOST_RENDEZVOUS=" + job.rendezvous);
  all.push_back("MESHPOST_SECRET=" + job.secret);
  all.push_back("MESHPOST_LAUNCHER=meshpost-run");
  if (process.listener >= 0) all.push_back(fmt::format("MESHPOST_LISTENER={}", process.listener));
  if (job.nodes > 0)
    all.push_back(fmt::format("MESHPOST_NODE=node-{}", node_of(job, process.number)));
  return all;
}

std::vector<std::string> inherited_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  return all;
}

}  // namespace meshpost::launch
