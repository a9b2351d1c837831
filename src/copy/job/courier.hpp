#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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
  explicit Courier(Peers const& peers) : peers_(peers) {}
  ~Courier() { stop(); }
  Courier(Courier const&) = delete;
  Courier& operator=(Courier const&) = delete;

  /// Adds the desk that `make` returns, in all processes or in none: a desk of which another
  /// process has no part would take the notices of the one that is made in its place. Collective.
  /// Starts the thread with the first. `by_network`: the thread may hang in its engine, and is
  /// watched. At most one, the first. \throws what `make` throws in any process; then it may be
  /// tried again
  Desk& add(std::string const& operation, std::function<std::unique_ptr<Desk>()> const& make,
            bool by_network = false);
  StatePtr ask(Desk& desk, Wish const& wish);
  /// Ends the thread, unless it hangs; copies still under way fail.
  void stop();
  /// Whether it does: then this courier must be kept for ever, with all that belongs to its desks.
  /// After stop().
  bool hangs() const { return hang_.has_value(); }

  static constexpr auto short_rest = std::chrono::microseconds(50);
  static constexpr auto longest_rest = std::chrono::microseconds(500);

 private:
  void prepare(bool by_network);
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
  net::Channel* watched_ = nullptr;  // none yet, if the processes have not agreed
  std::condition_variable ends_;
  bool ended_ = false;         // the thread has
  std::optional<Error> hang_;  // it never will
  std::thread watcher_;
};

}  // namespace meshpost::copying
