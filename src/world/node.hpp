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

/// The processes of a job that share memory with this one, found by test: a Unix socket to each,
/// over which memory files pass. Not thread-safe.
class Node {
 public:
  /// Collective over all processes, on `channel`. What one process lacks, all throw.
  /// \throws Error(bad_environment) where no file is to be had; Error(peer_lost, deadline)
  Node(Processes& processes, u32 channel);

  /// Processes of this node, this one among them, ascending.
  std::vector<u32> const& members() const { return members_; }
  bool has(u32 process) const { return std::ranges::find(members_, process) != members_.end(); }
  /// Whether all processes of the job are of one node: the same in all of them.
  bool only() const { return only_; }
  /// Why a process is not a member, for people.
  std::string why_not(u32 process) const;
  /// Processes of the same host that are no members though nobody asked for it (MESHPOST_NODE), as
  /// far as this process knows the reason.
  std::vector<SeparatePair> separate() const;
  /// What tells the host of each process from others, whether they share memory or not.
  std::vector<std::string> const& hosts() const { return hosts_; }
  /// Whether another member still holds its end of the socket: false at once when it was killed.
  /// Thread-safe.
  bool alive(u32 process) const;

  /// Passes `mine` to each other member and calls `take(process, number, file)` for each file of
  /// theirs, which is closed after. Collective over the node.
  /// \throws Error(peer_lost, deadline); Error(bad_environment) where no file is to be had, or
  /// what `take` throws
  void share(std::vector<Descriptor> const& mine,
             std::function<void(u32 process, u32 number, int file)> const& take);

 private:
  static constexpr std::chrono::seconds timeout{20};

  /// Everybody's result of `step`. Where it throws in one process, all do.
  std::vector<std::string> exchange_after(u32 channel, std::function<std::string()> const& step);
  Error no_files(std::string const& cause, int error) const;
  void call_lower(std::vector<std::string> const& names);
  void answer_higher(Descriptor const& listener, std::vector<bool> const& coming);
  void test_memory(u32 channel);

  Processes& processes_;
  u32 channel_;
  std::vector<Descriptor> sockets_;  // by process; none to oneself and to those out of reach
  std::vector<std::string> why_not_;
  std::vector<u32> members_;
  std::vector<u32> expected_;  // processes that could be members, by host and MESHPOST_NODE
  std::vector<std::string> hosts_;
  bool only_ = true;
};

}  // namespace meshpost
