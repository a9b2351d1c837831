#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "meshpost/device/backend.hpp"
#include "meshpost/trace/log.hpp"
#include "rma/runs/supervising/termination.hpp"
#include "rma/via/proxy/proxy.hpp"
#include "rma/windows/host_endpoint.hpp"

namespace meshpost::detail {

/// How a launch ended.
struct Ending {
  Reason reason = Reason::finished;
  std::optional<Error> failure;   ///< of the device itself
  std::vector<RankState> states;  ///< of own ranks when they were poisoned; empty: not poisoned
  bool met = false;  ///< with the ranks of all other processes: the run ended well in all
};

/// A launch with its grids.
struct RunningGrids {
  CooperativeLaunch* launch = nullptr;
  std::span<LaunchGrid const> grids{};
};

/// The host's supervision of running ranks. It prints their logs, detects failures, deadlocks and
/// standstill, and poisons them. It reads only memory that ranks publish to, and needs no driver
/// call while they run.
class Watch {
 public:
  /// `detector`: if other processes take part. `proxy`: if some ranks are out of reach. `host`: if
  /// the host may wake ranks. Else null.
  Watch(std::vector<RunningGrids> const& all_running, std::vector<LogReader>& logs,
        std::chrono::milliseconds deadline, TerminationDetector* detector, Proxy* proxy,
        HostEndpoint* host = nullptr, std::chrono::milliseconds grace = std::chrono::seconds(10));
  /// Calls `what` repeatedly while they run.
  void each_look(std::function<void()> what) { each_look_ = std::move(what); }
  /// Ends the ranks.
  void poison(Reason reason);
  /// Returns when all ranks have ended. If they don't within `grace` after the poison, it names
  /// those that remain and ends the process: a kernel can't be taken off a device. \throws
  /// Error(peer_lost) if the proxy hangs: ranks may then still run
  Ending until_end();

 private:
  struct Seen {
    TerminationDetector::Doing ranks;
    u32 failed = 0;
    u64 signs_of_life = 0;  // changes whenever a rank makes progress
  };
  struct Asked {
    u32 sequence;
    bool ended;
  };
  struct Watched : RunningGrids {
    std::vector<Asked> asked{};  // all its ranks when the question was asked; empty: none is open
    u32 asked_in = 0;            // the run they were in then
    u32 epoch = 0;               // number of the question
  };
  static void look_at(LaunchGrid const& grid, Seen& seen);
  Seen look() const;
  static std::optional<bool> question(Watched& running, bool all_wait);
  struct Quiet {
    bool known = true;  // false: the ranks have not answered yet
    std::optional<u64> number{};
  };
  static Quiet quiet(Watched& running);
  Quiet quiet();
  bool deadlocked();
  TerminationDetector::Own own(Seen const& seen, u64 life, bool ended);
  bool met() const;
  bool begun() const;
  bool all_blocked() const;
  bool any_left() const;
  void let_the_end_be_left();
  void drain_logs();
  void see_that_ranks_get_time(bool life);
  bool finished() const;
  std::optional<Error> failure();
  std::optional<Reason> find_reason(Seen const& seen, bool life);
  bool is_calm(Seen const& seen) const;
  std::string why() const;  // why it was ended, for people
  [[noreturn]] void abandon() const;

  std::vector<Watched> running_;
  std::vector<LogReader>& logs_;
  Deadline deadline_, grace_;  // until the run is ended, and then for its ranks to end
  Deadline starving_;          // a part of the first
  TerminationDetector* detector_;
  Proxy* proxy_;
  HostEndpoint* host_;
  Ending ending_;
  bool poisoned_ = false;
  bool counting_ = false;  // the time that ranks get, since the last sign of life
  u64 starved_ = 0;        // times that they got too little
  u64 lines_ = 0;          // of logs, printed so far
  std::function<void()> each_look_;
  u64 waits_ = 0;                 // polls before the ranks have begun
  std::optional<Error> unheard_;  // the event sink's error at a log line
  u32 round_ = 0;               // of the termination detector, for which the ranks were last asked
  std::optional<u64> in_vain_;  // the last result of quiet()
};

}  // namespace meshpost::detail
