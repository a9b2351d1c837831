#include "placement.hpp"

#include <meshpost/base/error.hpp>

#include <sched.h>

#include <charconv>
#include <cstring>

#include "common/files.hpp"

namespace bandwidth {

using namespace meshpost;
using apps::line_of;

namespace {

// Fails only for a thread that has ended meanwhile, or by a limit of the system.
void bind(pid_t thread, cpu_set_t const& cores) {
  if (sched_setaffinity(thread, sizeof cores, &cores) == 0 || errno == ESRCH) return;
  throw Error(Kind::bad_environment, "--cpu-node: bind thread " + std::to_string(thread),
              std::strerror(errno), "leave the option out, or bind the process by numactl");
}

}  // namespace

std::vector<u32> numbers_in(std::string const& list) {
  std::vector<u32> numbers;
  char const* at = list.data();
  char const* const end = at + list.size();
  while (at < end) {
    u32 first = 0;
    auto const [behind, error] = std::from_chars(at, end, first);
    if (error != std::errc{}) break;
    u32 last = first;
    at = behind;
    if (at < end && *at == '-') {
      auto const [rest, wrong] = std::from_chars(at + 1, end, last);
      if (wrong != std::errc{}) break;
      at = rest;
    }
    for (u32 number = first; number <= last && number < CPU_SETSIZE; ++number)
      numbers.push_back(number);
    if (at < end && *at++ != ',') break;
  }
  return numbers;
}

u32 node_of_process(std::vector<u32> const& nodes, u32 process, u32 processes) {
  if (nodes.size() > processes)
    throw Error(Kind::bad_argument, "--cpu-node",
                std::to_string(nodes.size()) + " nodes are named for " + std::to_string(processes) +
                    (processes == 1 ? " process" : " processes"),
                "name one node, or one for each process; measure several placements one by one");
  return nodes[process % nodes.size()];
}

void run_on_node(u32 node, std::filesystem::path const& nodes) {
  auto const name = "--cpu-node " + std::to_string(node);
  auto const cores = numbers_in(line_of(nodes / ("node" + std::to_string(node)) / "cpulist"));
  if (cores.empty()) {
    auto const known = line_of(nodes / "has_cpu");
    throw Error(Kind::bad_argument, name, "this host has no NUMA node of that number with cores",
                known.empty() ? "leave the option out: the system describes no nodes"
                              : "the nodes are " + known);
  }
  cpu_set_t allowed, wanted;
  CPU_ZERO(&wanted);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    throw Error(Kind::bad_environment, name, std::strerror(errno), "leave the option out");
  for (u32 const core : cores)
    if (core < CPU_SETSIZE && CPU_ISSET(core, &allowed)) CPU_SET(core, &wanted);
  if (CPU_COUNT(&wanted) == 0)
    throw Error(Kind::bad_argument, name, "this process may use none of that node's cores",
                "name another node, or start it without taskset or the scheduler's limit");
  for (auto const& thread : std::filesystem::directory_iterator("/proc/self/task"))
    bind(static_cast<pid_t>(std::stol(thread.path().filename())), wanted);
}

}  // namespace bandwidth
