#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/trace/log.hpp"
#include "rma/checks/delivery_ledger.hpp"
#include "rma/runs/diagnosing/failed_run_state.hpp"
#include "rma/runs/launching/run_part.hpp"
#include "rma/runs/supervising/watch.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// One run, from its launch to its result. One thread begins it, and the same or another one ends
/// it.
class RunSupervisor {
 public:
  RunSupervisor(WorldState& world, std::shared_ptr<RunRecord> const& record);
  ~RunSupervisor();
  RunSupervisor(RunSupervisor const&) = delete;
  RunSupervisor& operator=(RunSupervisor const&) = delete;

  /// True if its hosts have nothing to do while it is in progress.
  static bool needs_no_host(WorldState const& world, RunRecord const& record);
  /// True if such a run may be begun while earlier ones of its World are in progress.
  static bool may_queue(WorldState const& world, RunRecord const& record);
  /// Launches the kernel on all devices. Before all processes take part it throws errors itself;
  /// later ones are thrown by end(). It waits for the work of streams, for other processes, and for
  /// other Worlds' runs on these devices. With `at_once` it returns false instead of waiting.
  /// `behind`: it is queued behind other runs of this World.
  bool begin(bool at_once = false, bool behind = false);
  /// Returns when all ranks of all processes have ended; the record then has the result.
  void end();

  bool is_launched() const { return !not_launched_; }
  /// Returns when the ranks of a run behind a failed one have ended. They end at once.
  void await_end();

  /// True if a thread that hangs may still touch this object after end() has thrown.
  bool must_be_kept() const { return proxy_ && proxy_->hangs() && !launches_.empty(); }

 private:
  std::optional<Error> wait_for_streams() const;
  std::string operation() const;
  std::string describe_launch() const;
  std::chrono::milliseconds deadline() const;
  void give_back_devices();
  void forget_what_is_unread(u32 own) const;
  bool begins_at_once() const;
  bool is_agreed_on() const;
  bool helped() const;
  void agree();
  void reset_world();
  void take_part();
  // Preparation (prepare.cpp):
  RunState bare_state(u32 own) const;
  void prepare();
  LaunchSpec spec(std::string_view kind, bool lanes) const;
  std::vector<LaunchGrid> all_grids() const;
  void const* state_of(u32 device);
  // Of a graph (graph_runs.cpp):
  void make_graph();
  void take_news();
  void name_what_failed();
  // While it runs, and after that:
  void ranks_have_ended();
  void launch();
  Ending run_ranks();
  Ending until_end(Watch& watch);
  void finish(Ending const& ending);
  void look_at_news(RunPart& own) const;
  std::chrono::milliseconds quiesce_timeout(Reason reason) const;
  std::vector<RunPart> share(RunPart const& own) const;
  bool has_news() const;
  Error diagnosis(FailedRunState const& failed_state, Reason reason) const;
  std::string trace_file() const;
  void write_timeline(bool at_once);

  WorldState& world_;
  std::shared_ptr<RunRecord> kept_;  // keeps record_ alive, perhaps as long as this
  RunRecord& record_;
  Layout const& layout_;
  ProcessGroup const& group_;
  Proxy* const proxy_;                           // if some processes are out of reach
  std::optional<TerminationDetector> detector_;  // if other processes take part
  std::unique_lock<std::mutex> turn_;
  bool has_devices_ = false;
  bool host_knows_ = false;    // the endpoint knows that the run is in progress
  bool has_commands_ = false;  // from it
  bool ended_ = false;         // and did not fail
  bool behind_ = false;        // other runs, when it began
  u32 number_ = 0;             // RunWords::ended when it has ended; number of the last of
  u32 const count_;            // its runs; more than one for a graph on the devices
  std::optional<u32> taken_;   // the last of them whose news the host has
  std::shared_ptr<GraphOnDevices> graph_;
  bool gpus_have_lanes_ = false;
  std::string launch_;       // text that processes compare; empty: no others
  bool ranks_meet_ = false;  // ranks of all processes, without their hosts
  bool ended_well_ = false;  // then the ranks have met at the end, too
  u64 begin_ = 0, end_ = 0;
  std::vector<LaunchSpec> specs_;  // one for each kind of device
  std::vector<RunState> states_;
  std::shared_ptr<RunTrace> trace_;  // if there is a timeline to write
  std::vector<LogReader> readers_;
  std::shared_ptr<DeliveryLedger> ledger_;
  std::vector<std::unique_ptr<CooperativeLaunch>> launches_;  // while they run
  std::vector<RunningGrids> running_;                         // the same with their grids
  std::optional<Error> not_launched_;
};

}  // namespace meshpost::detail
