#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "doors.hpp"
#include "here.hpp"
#include "link.hpp"
#include "orders.hpp"
#include "reach.hpp"
#include "signals.hpp"

namespace meshpost::launch {

/// The launcher's hand on another host: starts processes there as it is told on standard input, and
/// tells on standard output what becomes of them. When standard input ends, or brings no sign of
/// life any more, the launcher is gone, and so are then all processes and what they have started.
class Agent : private Reports {
 public:
  Agent() : link_(0, 1), here_(*this) {}
  /// Returns the exit status.
  int run();

 private:
  void started(u32 process, pid_t pid) override;
  void printed(u32 process, int stream, std::string_view bytes) override;
  void printed_all(u32 process, int stream) override;
  bool full(int /*stream*/) const override { return link_.full(); }
  void ended(u32 process, End end) override;
  void input_taken() override;
  void lost(std::vector<u32> const& /*processes*/, std::string const& /*why*/,
            int /*status*/) override {}
  void say(std::string const& line) override;

  void on_signals();
  void take();
  void obey(Frame const& frame);
  void listen(Frame const& frame);
  void take_orders(std::string const& text);
  void start(Frame const& frame);
  void fail(std::string const& why, int status);

  Signals signals_;
  Link link_;
  Here here_;
  rlimit files_{};
  std::unique_ptr<Doors> doors_;
  std::optional<Reach> reach_;
  Orders orders_;
  Fd listener_;           // process 0's
  bool stopped_ = false;  // by the user: so is the launcher, and silent
  bool over_ = false;
};

}  // namespace meshpost::launch
