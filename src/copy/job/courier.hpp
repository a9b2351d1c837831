#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "copy/job/desk.hpp"
#include "world/peers.hpp"

namespace meshpost::copying {

/// The thread that gets on with desks: makes this process's copies, and answers others'. It looks
/// at once while something happens, and ever more seldom while nothing does, up to `longest_rest`.
class Courier {
 public:
  explicit Courier(Peers const& peers) : peers_(peers) {}
  ~Courier() { stop(); }
  Courier(Courier const&) = delete;
  Courier& operator=(Courier const&) = delete;

  /// Starts the thread with the first.
  Desk& add(std::unique_ptr<Desk> desk);
  StatePtr ask(Desk& desk, Wish const& wish);
  /// Ends the thread; copies still under way fail.
  void stop();

  static constexpr auto short_rest = std::chrono::microseconds(50);
  static constexpr auto longest_rest = std::chrono::microseconds(500);

 private:
  void work();
  void look_for_losses(std::vector<Desk*> const& desks);

  Peers const& peers_;
  std::vector<std::unique_ptr<Desk>> desks_;
  std::mutex mutex_;  // of desks_, and what follows
  std::condition_variable wake_;
  bool stopping_ = false, asked_ = false;
  std::thread thread_;
};

}  // namespace meshpost::copying
