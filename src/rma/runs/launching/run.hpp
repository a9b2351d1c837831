#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/trace/log.hpp"
#include "rma/checks/delivery_ledger.hpp"
#include "rma/runs/diagnosing/failed_run_state.hpp"
#include "rma/runs/launching/part.hpp"
#include "rma/runs/supervising/watch.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// One run, from its launch to its outcome. Begun by one thread, ended by the same or another.
class RunSupervisor {
 public:
  RunSupervisor(WorldState& world, std::shared_ptr<RunRecord> const& record);
  ~RunSupervisor();
  RunSupervisor(RunSupervisor const&) = delete;
  RunSupervisor& operator=(RunSupervisor const&) = delete;

  /// Whether its hosts have nothing to do while it is under way.
  static bool needs_no_host(WorldState const& world, RunRecord const& record);
  /// Whether such a run may be begun while earlier ones of its World are under way.
  static bool may_queue(WorldState const& world, RunRecord const& record);
  /// Launches the kernel on all devices. What fails from the moment on when all processes take part
  /// end() throws; before, this does. Waits for what streams hold, for other processes, and for
  /// other Worlds' runs on these devices, unless `at_once`: then returns false if it had to.
  /// `behind`: other runs of this World.
  bool begin(bool at_once = false, bool behind = false);
  /// Returns when all ranks of all processes have ended; the record has what they left.
  void end();

  bool is_launched() const { return !not_launched_; }
  /// Returns when the ranks of a run behind one that has failed have ended: they do so at once.
  void await_end();

  /// Whether a thread that hangs may still touch what is here, when end() has thrown.
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
  // Making it ready (prepare.cpp):
  RunState bare_state(u32 own) const;
  void prepare();
  LaunchSpec spec(std::string_view kind, bool lanes) const;
  std::vector<Grid> all_grids() const;
  void const* state_of(u32 device);
  // Of a graph (graph_runs.cpp):
  void make_graph();
  void take_news();
  void name_what_failed();
  // While it runs, and behind it:
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
  std::shared_ptr<RunRecord> kept_;  // record_, which may have to live as long as this
  RunRecord& record_;
  Layout const& layout_;
  ProcessGroup const& group_;
  Proxy* const proxy_;                           // where some processes are out of reach
  std::optional<TerminationDetector> detector_;  // where other processes take part
  std::unique_lock<std::mutex> turn_;
  bool has_devices_ = false;
  bool host_knows_ = false;    // its endpoint does, that the run is under way
  bool has_commands_ = false;  // from it
  bool ended_ = false;         // and was none that failed
  bool behind_ = false;        // of other runs, when it began
  u32 number_ = 0;             // RunWords::ended, when it has ended; of the last of
  u32 const count_;            // runs; more than one of a graph that the devices have
  std::optional<u32> taken_;   // the last of them whose news the host has
  std::shared_ptr<GraphOnDevices> graph_;
  bool gpus_have_lanes_ = false;
  std::string launch_;       // as processes compare it; empty: there are no others
  bool ranks_meet_ = false;  // those of all processes, by themselves
  bool ended_well_ = false;  // then they have met at the end, too
  u64 begin_ = 0, end_ = 0;
  std::vector<LaunchSpec> specs_;  // a kind of device each
  std::vector<RunState> states_;
  std::shared_ptr<RunTrace> trace_;  // if there is a timeline to write
  std::vector<LogReader> readers_;
  std::shared_ptr<DeliveryLedger> ledger_;
  std::vector<std::unique_ptr<CooperativeLaunch>> launches_;  // while they run
  std::vector<RunningGrids> running_;                         // the same with their grids
  std::optional<Error> not_launched_;
};

}  // namespace meshpost::detail
