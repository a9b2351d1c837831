#pragma once
// The members of a World: one object for each concern, each with its own state. The files of
// src/rma share it; no other code sees it.
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "meshpost/rma/world.hpp"
#include "rma/communicators.hpp"
#include "rma/runs/launching/agreement.hpp"
#include "rma/runs/launching/device_locks.hpp"
#include "rma/runs/launching/queue.hpp"
#include "rma/runs/launching/resources.hpp"
#include "rma/via/lane/keeper.hpp"
#include "rma/via/proxy/proxy.hpp"
#include "rma/windows/host_windows.hpp"
#include "rma/windows/windows.hpp"
#include "trace/host_timeline.hpp"

namespace meshpost::detail {

/// State that a part above keeps in a World.
class WorldClient {
 public:
  virtual ~WorldClient() = default;
  /// The window is about to be freed: returns when nobody uses it any more.
  virtual void release(u32 window) = 0;
  /// A line for each part of it that waits, for reports. It may not wait for a device or process.
  virtual std::vector<std::string> waiting() = 0;
  /// The World ends: returns when the client uses it no more.
  virtual void close() = 0;
};

class WorldState {
 public:
  explicit WorldState(WorldOptions options);
  ~WorldState() = default;
  WorldState(WorldState const&) = delete;
  WorldState& operator=(WorldState const&) = delete;

  /// Destroys `state` when all its runs are over, but keeps it for ever if a thread hangs in its
  /// engine.
  static void end(WorldState* state);

  // For host calls of any thread. These wait until the runs launched so far are over:
  WindowInfo make_window(World::WindowSpec const& spec);
  void free_window(WindowInfo const& info);
  Communicator split(Communicator const& parent, std::function<i64(RankId)> const& color);

  std::shared_ptr<RunRecord> start(KernelImage const& image, void const* kernel, std::size_t bytes,
                                   Launch const& launch, bool awaited);
  std::shared_ptr<RunRecord> start(std::shared_ptr<GraphRecord> const& graph, Launch const& launch,
                                   bool awaited);

  WorldOptions const& options() const { return options_; }
  u32 number() const { return number_; }
  ProcessGroup const& group() const { return group_; }
  Layout const& layout() const { return layout_; }
  RunQueue& queue() { return queue_; }
  HostWindows& host() { return host_; }
  HostWindows const& host() const { return host_; }
  Communicators const& communicators() const { return communicators_; }
  Windows const& windows() const { return windows_; }
  GlobalAddresses& addresses() { return addresses_; }
  EndpointCounters& endpoints() { return endpoints_; }

  // For the run in progress; no other code uses these meanwhile.
  Heap& heap() { return heap_; }
  LaneKeeper& lanes() { return lanes_; }
  Proxy* proxy() const { return proxy_.get(); }  ///< null: all ranks are in reach
  HostEndpoint& endpoint() { return endpoint_; }
  DeviceLocks& locks() { return locks_; }
  Agreement& agreement() { return agreement_; }
  RunResources& resources() { return resources_; }
  RunResources const& resources() const { return resources_; }
  WindowInfo const& tags() const { return tags_; }
  /// The client, which the first call makes. Any thread.
  std::shared_ptr<WorldClient> client(std::function<std::shared_ptr<WorldClient>()> const& make);
  trace::HostTimeline* host_timeline() const { return host_timeline_.get(); }  ///< may be null
  u64 last_end() const { return last_end_; }  ///< of a run, on the host's clock
  void has_ended_at(u64 time) { last_end_ = time; }
  /// True if runs are launches in streams of the devices, and are over when their kernels have
  /// ended.
  bool queues_runs() const { return resources_.devices_queue() && !proxy_; }
  std::string const& trace_file(Launch const& launch) const {
    return launch.trace.empty() ? options_.trace : launch.trace;
  }
  /// Each process of a job writes a separate file.
  std::string own_file(std::string const& file) const;

 private:
  void close();
  bool meets_at_end();
  void begin_to_observe();
  void end_to_observe();
  void check_launch(KernelImage const& image, Launch const& launch) const;

  WorldOptions const options_;
  u32 const number_;
  ProcessGroup const group_;
  Layout const layout_;
  Heap heap_;
  GlobalAddresses addresses_{layout_, heap_};
  WorldMemory const memory_{group_, layout_, heap_, addresses_};
  LaneKeeper lanes_;
  RunResources resources_;
  std::unique_ptr<Proxy> const proxy_;
  DeviceLocks locks_;
  Agreement agreement_;
  RunQueue queue_{*this, group_};
  HostEndpoint endpoint_{layout_, proxy_.get()};
  Communicators communicators_;
  EndpointCounters endpoints_{memory_};
  Windows windows_{number_, memory_, endpoint_, endpoints_};
  HostWindows host_{memory_, queue_, windows_, endpoint_, endpoints_, agreement_, options_.net};
  WindowInfo tags_;  // the default tag space
  std::mutex of_client_;
  std::shared_ptr<WorldClient> client_;
  u64 last_end_ = 0;
  std::shared_ptr<trace::HostTimeline> host_timeline_;
  int const exceptions_ = std::uncaught_exceptions();  // at the World's construction
};

/// The World of that number. \throws Error(misuse) if it is gone
std::shared_ptr<WorldState> world_of(u32 number, std::string_view operation);

}  // namespace meshpost::detail
