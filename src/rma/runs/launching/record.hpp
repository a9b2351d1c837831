#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/rma/world.hpp"
#include "rma/runs/launching/graph.hpp"

namespace meshpost::detail {

class RunSupervisor;
class WorldState;
struct KeepIfItHangs {
  void operator()(RunSupervisor* run) const;
};

/// A launch in progress: waits in the World's queue, runs, then holds the result.
struct RunRecord {
  KernelImage image;
  std::vector<std::max_align_t> kernel;  // a copy of the kernel object
  Launch launch;
  std::vector<std::shared_ptr<Event>> before;  // of Launch::streams
  // Null: a single run. Else its runs are launched one by one, or all together in the devices'
  // graph.
  std::shared_ptr<GraphRecord> graph;
  bool one_by_one = false;
  u32 step = 0;  // of the graph: the run with the kernel above

  WorldState* world = nullptr;                          // until it is done
  std::unique_ptr<RunSupervisor, KeepIfItHangs> run{};  // once begun; of the thread that drives it

  std::mutex mutex;
  std::condition_variable changed;
  bool in_queue = false;                       // guarded by its World's mutex
  bool has_turn = false;                       // it is the first in the queue
  bool driven = false;                         // a thread supervises it (runs/launching/queue.cpp)
  std::atomic<bool> others_may_queue = false;  // behind it: it was begun in that way
  bool launched = false;                       // or the launch failed
  std::vector<std::shared_ptr<Event>> ends;    // of its kernels, if Backend::queues_launches
  bool ended = false;  // the kernels have: streams continue, the host still reads results
  std::vector<std::function<void()>> at_end;  // actions of streams that wait for the run
  bool done = false;
  bool observed = false;  // somebody has waited
  RunResult result;
  std::optional<Error> error;  // a value: threads would all count references to a shared exception

  std::string name() const;  // for messages
  /// Takes the kernel of that run of the graph, and its launch.
  void take_step(u32 number);
  bool has_more_steps() const;
  void launch_is_done(std::vector<std::shared_ptr<Event>> of_kernels);
  void end();  // idempotent
  bool try_to_drive();
};

/// The end of its kernels, well or not, for streams that wait for it.
std::shared_ptr<Event> end_of(std::shared_ptr<RunRecord> const& record);

/// Supervises a run that the caller drives, until it is over.
void drive(std::shared_ptr<RunRecord> const& record);

}  // namespace meshpost::detail
