#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "copy/job/desk.hpp"
#include "world/peers.hpp"

namespace meshpost::copying {

/// The thread that gets on with desks: makes this process's copies, and answers others'. It looks
/// at once while something happens, and ever more seldom while nothing does, up to `longest_rest`.
///
/// The thread may not come back from a network engine (src/net/channel_losses.cpp says why);
/// another thread then does what is left to be done (hang.cpp).
class Courier {
 public:
  explicit Courier(Peers const& peers);
  ~Courier();
  Courier(Courier const&) = delete;
  Courier& operator=(Courier const&) = delete;

  /// Starts the thread, if there is none yet. `watched`: a desk by the network is to follow, in
  /// whose engine the thread may hang. \throws Error: the system has no room for threads
  void start(bool watched = false);
  /// Takes over a desk that all processes have made. After start(). Throws nothing, so that no
  /// process is left alone with one. `by_network`: at most one, the first.
  Desk& add(std::unique_ptr<Desk> desk, bool by_network = false) noexcept;
  StatePtr ask(Desk& desk, Wish const& wish);
  /// Ends the thread, unless it hangs; copies still under way fail. `agreed`: no process needs this
  /// courier any more. Otherwise the others are told that their copies end, too.
  void stop(bool agreed);
  /// Whether it does: then this courier must be kept for ever, with all that belongs to its desks.
  /// After stop().
  bool hangs() const { return hang_.has_value(); }

  static constexpr u32 most_desks = 2;
  static constexpr auto short_rest = std::chrono::microseconds(50);
  static constexpr auto longest_rest = std::chrono::microseconds(500);

 private:
  void work();
  void look_for_losses(std::vector<Desk*> const& desks);
  void watch();

  Peers const& peers_;
  std::vector<std::unique_ptr<Desk>> desks_;
  std::mutex mutex_;  // of desks_, and what follows
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
