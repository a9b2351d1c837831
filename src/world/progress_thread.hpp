#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/channel.hpp"
#include "world/process_group.hpp"

namespace meshpost {

/// Serves other processes by messages of a channel of its own. Called by: one thread at a time.
class Server {
 public:
  virtual ~Server() = default;
  /// Does what is due. True if anything happened.
  virtual bool work() = 0;
  /// True if nothing that this process asked for is under way.
  virtual bool idle() const = 0;
  /// Everything that is under way fails, and all that is asked for from now on. Memory that the
  /// engine may be reading stays.
  virtual void close(Error const& error) = 0;
  virtual net::Channel& channel() = 0;

  /// close(), and the others, of so many processes, are told that nothing is answered here.
  void fail_all(Error const& error, u32 processes);
};

/// The progress thread of servers: does what this process asks for, and answers other processes. It
/// looks at once while something happens, and ever more seldom while nothing does.
///
/// The thread may not come back from a network engine (src/net/channel_losses.cpp says why);
/// another thread then does what is left to be done (progress_hang.cpp).
class ProgressThread {
 public:
  /// Its names in errors.
  struct Names {
    std::string user;       ///< "JobMemory"
    std::string operation;  ///< "copy"
    std::string operations;
  };
  /// When nothing happens: after that many sleeps of `short_sleep`, sleeps of this length.
  struct Pace {
    u32 short_sleeps;
    std::chrono::microseconds longest_sleep;
  };
  ProgressThread(ProcessGroup const& group, Names names, Pace pace);
  ~ProgressThread();
  ProgressThread(ProgressThread const&) = delete;
  ProgressThread& operator=(ProgressThread const&) = delete;

  /// Starts the thread, if there is none yet. `watched`: a server by the network is to follow, in
  /// whose engine the thread may hang. \throws Error: the system has no room for threads
  void start(bool watched = false);
  /// Takes over a server that all processes have made. After start(). Throws nothing, so that no
  /// process is left alone with one. `by_network`: at most one, the first.
  void add(std::unique_ptr<Server> server, bool by_network = false) noexcept;
  /// There is something to do. Any thread.
  void wake();
  /// Ends the thread, unless it hangs; what is still under way fails. `agreed`: no process needs
  /// this progress thread any more. Otherwise the others are told that nothing is answered here.
  void stop(bool agreed);
  /// True if it does. Then this progress thread must be kept for ever, with all that belongs to its
  /// servers. After stop().
  bool hangs() const { return hang_.has_value(); }

  static constexpr u32 most_servers = 2;
  static constexpr auto short_sleep = std::chrono::microseconds(50);

 private:
  void work();
  bool work(Server& server);
  void look_for_losses(std::vector<Server*> const& servers);
  void fail_all(Server& server, Error const& error) const {
    server.fail_all(error, group_.count());
  }
  void watch();

  ProcessGroup const& group_;
  Names const names_;
  Pace const pace_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::mutex mutex_;  // of servers_, and what follows
  std::condition_variable wake_;
  bool stopping_ = false, asked_ = false;
  std::vector<Server*> failed_;  // the thread's own
  std::thread thread_;
  // Of who watches it, if anybody.
  net::Channel* watched_ = nullptr;
  std::condition_variable ends_;
  bool ended_ = false;         // the thread has
  std::optional<Error> hang_;  // it never will
  std::thread watcher_;
};

}  // namespace meshpost
