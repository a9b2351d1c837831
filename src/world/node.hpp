#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "meshpost/base/descriptor.hpp"
#include "world/processes.hpp"
#include "world/reach.hpp"

namespace meshpost {

/// The processes of a job that share memory with this one, found by trying. There is a Unix socket
/// to each, which passes memory files. Not thread-safe.
class Node {
 public:
  /// Collective over all processes, on `channel`. If a process lacks something, all processes
  /// throw.
  /// \throws Error(bad_environment) if no further file can be opened; Error(peer_lost, deadline)
  Node(Processes& processes, u32 channel);

  /// Processes of this node, this one among them, ascending.
  std::vector<u32> const& members() const { return members_; }
  bool has(u32 process) const { return std::ranges::find(members_, process) != members_.end(); }
  /// True if all processes of the job are of one node. The same in all processes.
  bool only() const { return only_; }
  /// Why a process is not a member, as text for users.
  std::string why_not(u32 process) const;
  /// Processes of the same host that are no members though MESHPOST_NODE does not separate them.
  /// Only those whose reason this process knows.
  std::vector<SeparatePair> separate() const;
  /// Text by process that identifies its host, whether or not the processes share memory.
  std::vector<std::string> const& hosts() const { return hosts_; }
  /// True if another member still holds its end of the socket. False as soon as that process is
  /// killed. Thread-safe.
  bool alive(u32 process) const;

  /// Passes `mine` to each other member. Calls `take(process, number, file)` for each file of
  /// theirs, and closes the file after that. Collective over the node.
  /// \throws Error(peer_lost, deadline); Error(bad_environment) if no further file can be opened;
  /// what `take` throws
  void share(std::vector<Descriptor> const& mine,
             std::function<void(u32 process, u32 number, int file)> const& take);

 private:
  static constexpr std::chrono::seconds timeout{20};

  /// The result of `step` of each process. If it throws in one process, all throw.
  std::vector<std::string> exchange_after(u32 channel, std::function<std::string()> const& step);
  Error no_files(std::string const& cause, int error) const;
  void call_lower(std::vector<std::string> const& names);
  void answer_higher(Descriptor const& listener, std::vector<bool> const& coming);
  void test_memory(u32 channel);

  Processes& processes_;
  u32 channel_;
  std::vector<Descriptor> sockets_;  // by process; none to this process and to those out of reach
  std::vector<std::string> why_not_;
  std::vector<u32> members_;
  std::vector<u32> expected_;  // processes that could be members, by host and MESHPOST_NODE
  std::vector<std::string> hosts_;
  bool only_ = true;
};

}  // namespace meshpost
