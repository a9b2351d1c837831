#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "copy/job/copy_server.hpp"
#include "world/process_group.hpp"

namespace meshpost::copying {

/// The progress thread of the copy servers: makes this process's copies, and answers others'. It
/// looks at once while something happens, and ever more seldom while nothing does, up to
/// `longest_sleep`.
///
/// The thread may not come back from a network engine (src/net/channel_losses.cpp says why);
/// another thread then does what is left to be done (hang.cpp).
class ProgressThread {
 public:
  explicit ProgressThread(ProcessGroup const& group);
  ~ProgressThread();
  ProgressThread(ProgressThread const&) = delete;
  ProgressThread& operator=(ProgressThread const&) = delete;

  /// Starts the thread, if there is none yet. `watched`: a copy server by the network is to follow,
  /// in whose engine the thread may hang. \throws Error: the system has no room for threads
  void start(bool watched = false);
  /// Takes over a copy server that all processes have made. After start(). Throws nothing, so that
  /// no process is left alone with one. `by_network`: at most one, the first.
  CopyServer& add(std::unique_ptr<CopyServer> server, bool by_network = false) noexcept;
  StatePtr ask(CopyServer& server, CopyRequest const& request);
  /// Ends the thread, unless it hangs; copies still under way fail. `agreed`: no process needs this
  /// progress thread any more. Otherwise the others are told that their copies end, too.
  void stop(bool agreed);
  /// True if it does. Then this progress thread must be kept for ever, with all that belongs to its
  /// copy servers. After stop().
  bool hangs() const { return hang_.has_value(); }

  static constexpr u32 most_servers = 2;
  static constexpr auto short_sleep = std::chrono::microseconds(50);
  static constexpr auto longest_sleep = std::chrono::microseconds(500);

 private:
  void work();
  void look_for_losses(std::vector<CopyServer*> const& servers);
  void watch();

  ProcessGroup const& group_;
  std::vector<std::unique_ptr<CopyServer>> servers_;
  std::mutex mutex_;  // of servers_, and what follows
  std::condition_variable wake_;
  bool stopping_ = false, asked_ = false;
  std::thread thread_;
  // Of who watches it, if anybody.
  net::Channel* watched_ = nullptr;
  std::condition_variable ends_;
  bool ended_ = false;         // the thread has
  std::optional<Error> hang_;  // it never will
  std::thread watcher_;
};

}  // namespace meshpost::copying
