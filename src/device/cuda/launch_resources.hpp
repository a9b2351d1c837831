#pragma once
#include <cuda_runtime_api.h>

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/prompt_threads.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost::cuda {

/// The order in which kernels of several Worlds run on the GPUs of this process: the order of their
/// launches. Launches go one after the other. Each World has a stream on each GPU. If another
/// World's stream was the last on a GPU, the next one's waits for it. Otherwise a kernel could have
/// its ranks on one GPU, while another kernel holds a second GPU that they wait for. Only launches
/// are ordered; nobody waits for runs.
class LaunchOrder {
 public:
  static LaunchOrder& instance();
  [[nodiscard]] std::unique_lock<std::mutex> take() { return std::unique_lock(mutex_); }
  /// Call it while the order is taken: later work of `stream` begins after all that was launched.
  void put_last(int device, Stream& stream);
  /// Call it before the stream is destroyed. The stream has no work any more.
  void forget(Stream const& stream);

 private:
  std::mutex mutex_;
  std::map<int, Stream*> last_;
};

/// The numbers that decide if the ranks of one GPU fit.
struct Fit {
  void const* entry;
  int device;
  u32 threads;  // of a rank
  u64 shared;   // bytes of dynamic shared memory of a rank
  u32 ranks;
  u32 sharers;  // processes
  auto operator<=>(Fit const&) const = default;
};

/// State that stays between launches, so that the next one calls the driver for nothing but the
/// launch.
class CudaLaunchResources : public LaunchResources {
 public:
  CudaLaunchResources() = default;
  CudaLaunchResources(CudaLaunchResources const&) = delete;
  CudaLaunchResources& operator=(CudaLaunchResources const&) = delete;
  ~CudaLaunchResources() override;

  bool knows(Fit const& fit) const { return fits_.contains(fit); }
  void remember(Fit const& fit) { fits_.insert(fit); }
  /// The device's stream for runs, which follow each other on it.
  Stream& stream(int device);
  void quiesce() override;
  /// Calls `launch` with 0 to count - 1, in parallel if there are cores for that: a launch takes
  /// the driver some 5 us. `neighbours`: processes that share the cores, with this one.
  void launch_all(u32 count, u32 neighbours, std::function<void(u32)> const& launch);
  /// \throws Error(bad_environment)
  void refuse_blocking_launches(std::string const& kernel);

 private:
  std::set<Fit> fits_;
  std::map<int, std::unique_ptr<Stream>> streams_;
  bool asked_ = false;
  PromptThreads launchers_{"launch kernels", std::chrono::microseconds(100)};
};

}  // namespace meshpost::cuda
