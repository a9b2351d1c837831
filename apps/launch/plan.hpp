#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "hosts.hpp"

namespace meshpost::launch {

/// Where the processes of a job on several hosts run, and how they are started. A plain value.
struct Plan {
  std::vector<Host> hosts;               ///< none: all processes run here, without ssh
  std::vector<u32> host_of;              ///< of each process, in `hosts`
  std::vector<std::string> way;          ///< words before a host's name: ssh
  bool direct = true;                    ///< this host is not reached that way
  std::string launcher;                  ///< meshpost-run there
  std::string meeting_host;              ///< address or interface of process 0's; empty: found
  int meeting_port = 0;                  ///< 0: any
  std::chrono::milliseconds silence{};   ///< after which a host is lost
  std::chrono::milliseconds patience{};  ///< for all agents to be there; 0: without end

  bool here() const { return hosts.empty(); }
  std::string const& name_of(u32 process) const { return hosts[host_of[process]].name; }
};

/// Takes the place of --ssh where that is not given.
inline constexpr char const* ssh_variable = "MESHPOST_SSH";

/// The words of --ssh. OpenSSH gets options behind them: it must not ask anything, since who starts
/// a job on many hosts can't answer, and needs no terminal there.
std::vector<std::string> way_from(std::string const& words);

/// Takes --rendezvous apart: "host", "host:port", ":port", "interface".
/// \throws Error(bad_argument)
void take_meeting(Plan& plan, std::string const& text);

}  // namespace meshpost::launch
