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

/// In which order kernels of several Worlds run on the GPUs of this process: as they are launched,
/// which one launch after the other does. Each World has a stream on each GPU; where another one's
/// was the last, the next one's waits for it. So no kernel has its ranks on one GPU while another,
/// which has come first on a second, holds what they wait for. Launches only: runs are not waited
/// for.
class LaunchOrder {
 public:
  static LaunchOrder& instance();
  [[nodiscard]] std::unique_lock<std::mutex> take() { return std::unique_lock(mutex_); }
  /// While it is taken: what `stream` will be given begins behind all that was launched.
  void put_last(int device, Stream& stream);
  /// Before it goes. It has nothing to do any more.
  void forget(Stream const& stream);

 private:
  std::mutex mutex_;
  std::map<int, Stream*> last_;
};

/// What decides whether the ranks of one GPU fit.
struct Fit {
  void const* entry;
  int device;
  u32 threads;  // of a rank
  u64 shared;   // bytes of dynamic shared memory of a rank
  u32 ranks;
  u32 sharers;  // processes
  auto operator<=>(Fit const&) const = default;
};

/// What stays between launches, so that the next one asks the driver for nothing but to launch.
class CudaLaunchResources : public LaunchResources {
 public:
  CudaLaunchResources() = default;
  CudaLaunchResources(CudaLaunchResources const&) = delete;
  CudaLaunchResources& operator=(CudaLaunchResources const&) = delete;
  ~CudaLaunchResources() override;

  bool knows(Fit const& fit) const { return fits_.contains(fit); }
  void remember(Fit const& fit) { fits_.insert(fit); }
  /// The device's own for runs: they follow each other on it.
  Stream& stream(int device);
  void quiesce() override;
  /// Calls `launch` with 0 to count - 1, where there are cores for it side by side: a launch takes
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
