#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"
#include "meshpost/device/device.hpp"

namespace meshpost {

/// How a kernel is launched. Fields that are not set have a sensible value.
struct Launch {
  /// Threads of a rank; x = 0: one on CPU devices, 256 on GPUs. If the kernel depends on their
  /// number, set it here: CPU devices then run that many fibers.
  Dim3 threads{0, 1, 1};
  Bytes scratch{};                 ///< of each rank (GPU: shared memory)
  std::vector<Stream*> streams{};  ///< the run follows their work; their later work follows the run
  std::optional<std::chrono::milliseconds>
      deadline{};  ///< without progress; 0: never; unset: the World's
  /// File for the timeline, as Perfetto JSON. It is written when wait() returns, which takes some
  /// 0.1 ms or more. For many launches in a row, name the World's file instead
  /// (WorldOptions::trace).
  std::string trace{};
  /// The host takes part: while it runs, the host and streams read and write windows, and raise
  /// counters, at once (Window::put_notify, notify; StreamEndpoint). If all ranks wait, that is
  /// then no deadlock, because the host may wake them. Only the deadline ends such a run. The same
  /// in all processes.
  bool with_host = false;
  bool thread_a_rank = false;  ///< CPU: each rank on a worker thread of its own
  void* user = nullptr;        ///< for layers above: RunState::user
};

/// Notifications that arrived and were not consumed.
struct Unconsumed {
  std::string window;
  RankId rank{};  ///< where they arrived
  Tag tag{};
  u32 count = 0;
  RankId sender{};  ///< of the last of them; the host of process p: World::size() + p
};

/// The result of a run that ended well.
struct RunResult {
  double seconds = 0;                  ///< from the launch to the end of the last rank
  std::vector<Unconsumed> unconsumed;  ///< also reported as a warning; 100,000 a process at most
  u64 unconsumed_left_out = 0;         ///< number of further ones
  std::vector<std::vector<double>>
      timings;  ///< seconds, [device][interval] of start_timer/stop_timer
};

namespace detail {
struct RunRecord;
}

/// A kernel that was launched. Movable; one that was moved from can only be destroyed. If it is
/// destroyed before wait(), it waits and reports an error as a warning.
class Run {
 public:
  explicit Run(std::shared_ptr<detail::RunRecord> record);
  ~Run();
  Run(Run&&) noexcept = default;
  Run& operator=(Run&&) = delete;
  Run(Run const&) = delete;
  Run& operator=(Run const&) = delete;

  /// Returns when all ranks of all devices have ended. Not collective. Any thread may call it,
  /// several times.
  /// \throws Error(kernel_failed, deadlock, deadline, device_failed) naming ranks and operations
  RunResult const& wait(std::source_location where = std::source_location::current());
  /// True if wait() would return at once. Thread-safe. \throws Error(misuse) after fork()
  bool done() const;

 private:
  std::shared_ptr<detail::RunRecord> record_;
};

}  // namespace meshpost
