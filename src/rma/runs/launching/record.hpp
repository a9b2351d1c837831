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

/// A launch on its way: waits in the world's queue, runs, then holds the outcome.
struct RunRecord {
  KernelImage image;
  std::vector<std::max_align_t> kernel;  // a copy of the kernel object
  Launch launch;
  std::vector<std::shared_ptr<Event>> before;  // of Launch::streams
  // Null: a single run. Else its runs are launched one by one, or all together as the devices have
  // them.
  std::shared_ptr<GraphRecord> graph;
  bool one_by_one = false;
  u32 step = 0;  // of the graph: whose kernel the above is

  WorldState* world = nullptr;                          // until it is done
  std::unique_ptr<RunSupervisor, KeepIfItHangs> run{};  // once it has begun; of who drives it

  std::mutex mutex;
  std::condition_variable changed;
  bool in_queue = false;                       // guarded by its World's mutex
  bool has_turn = false;                       // it is the first in the queue
  bool driven = false;                         // a thread sees to it (runs/launching/queue.cpp)
  std::atomic<bool> others_may_queue = false;  // behind it, for it has begun so
  bool launched = false;                       // or failed to be
  std::vector<std::shared_ptr<Event>> ends;    // of its kernels, if Backend::queues_launches
  bool ended = false;  // the kernels have: streams go on, while the host still reads what they left
  std::vector<std::function<void()>> at_end;  // what streams that wait for the run have left
  bool done = false;
  bool observed = false;  // somebody has waited
  RunResult result;
  std::optional<Error>
      error;  // a value: an exception that threads share would be counted by them all

  std::string name() const;  // for messages
  /// The kernel of that run of the graph, and how it is launched.
  void take_step(u32 number);
  bool has_more_steps() const;
  void launch_is_done(std::vector<std::shared_ptr<Event>> of_kernels);
  void end();  // idempotent
  bool try_to_drive();
};

/// The end of its kernels, well or not, as streams wait for it.
std::shared_ptr<Event> end_of(std::shared_ptr<RunRecord> const& record);

/// Sees to a run that the caller drives, until it is over.
void drive(std::shared_ptr<RunRecord> const& record);

}  // namespace meshpost::detail
