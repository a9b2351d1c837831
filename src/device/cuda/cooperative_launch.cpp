#include "device/cuda/cooperative_launch.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/caught.hpp"
#include "base/pause.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/gpu_launch.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/stream.hpp"

namespace meshpost::cuda {
namespace {

CudaLaunchResources& resources_of(LaunchSpec const& spec, CudaLaunchResources* own) {
  return own ? *own : static_cast<CudaLaunchResources&>(*spec.resources);
}

class CudaLaunch : public CooperativeLaunch {
 public:
  explicit CudaLaunch(LaunchSpec const& spec)
      : own_resources_(spec.resources ? nullptr : std::make_unique<CudaLaunchResources>()),
        grids_(spec.grids),
        kernel_(spec.graph ? static_cast<CudaGraph&>(*spec.graph).name() : spec.image.name) {
    auto& resources = resources_of(spec, own_resources_.get());
    resources.refuse_blocking_launches(spec.image.name);
    if (spec.graph) launch_all(spec, static_cast<CudaGraph&>(*spec.graph).launches(), resources);
    else launch_all(spec, launches_of(spec, resources), resources);
  }

  // Polls without sleeping at first, since most runs are short, and any sleep takes at least 70 us.
  // It looks many times at the ranks' words between two looks at the clock. Questions to the driver
  // take locks, so some time passes between two of them.
  void doze(std::chrono::microseconds timeout) override {
    constexpr std::chrono::microseconds attentive{1000}, nap{20}, between_questions{10};
    auto const start = Clock::now();
    if (watched_since_ == Clock::time_point()) watched_since_ = start;
    for (auto asked = start;;) {
      for (u32 looks = 0; looks < 32; ++looks) {
        if (met()) return;
        pause_processor();
      }
      auto now = Clock::now();
      if (now - watched_since_ >= attentive) {
        std::this_thread::sleep_for(nap);
        now = Clock::now();
      }
      if (now - asked >= between_questions) {
        if (finished()) return;
        asked = now;
      }
      if (now - start >= timeout) return;
    }
  }
  std::vector<std::shared_ptr<Event>> ends() override {
    std::vector<std::shared_ptr<Event>> events;
    for (auto const& stream : streams_) events.push_back(stream->record());
    return events;
  }
  // The driver has to be asked about a kernel that did not come to its end. Later launches on the
  // stream may then wait behind it, and end without having begun.
  bool finished() override {
    if (met()) return true;
    Current const any;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      auto const status = cudaStreamQuery(static_cast<cudaStream_t>(streams_[i]->native()));
      if (status == cudaErrorNotReady) return false;
      if (status != cudaSuccess && !failure_) {
        cudaGetLastError();
        failure_ = to_error(status, fmt::format("{} on cuda:{}", kernel_, devices_[i]));
      }
    }
    return true;
  }
  std::optional<Error> failure() override {
    finished();
    return failure_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  // True if the ranks of all grids have met at the end of that run.
  bool met(u32 before = 0) const {
    return std::ranges::all_of(grids_,
                               [before](LaunchGrid const& grid) { return grid.is_over(before); });
  }
  template <class Launch>
  void launch_all(LaunchSpec const& spec, std::vector<Launch> const& launches,
                  CudaLaunchResources& resources) {
    auto& order = LaunchOrder::instance();
    auto const launching = order.take();
    for (auto const& launch : launches) {
      auto& stream = resources.stream(launch.device());
      streams_.push_back(&stream);
      devices_.push_back(launch.device());
      order.put_last(launch.device(), stream);
      for (auto const& event : spec.after) stream.wait(event);
    }
    // In the stream's order: other launches of the same graph may be in progress.
    for (std::size_t i = 0; spec.graph && i < grids_.size(); ++i)
      streams_[i]->store(grids_[i].base, grids_[i].run - grids_[i].runs);
    std::vector<std::optional<Error>> errors(launches.size());
    Current const current(devices_.front());  // the caller may have chosen another device here
    resources.launch_all(static_cast<u32>(launches.size()), spec.neighbours, [&](u32 i) {
      errors[i] = start(launches[i], static_cast<cudaStream_t>(streams_[i]->native()));
    });
    auto const failed = std::ranges::find_if(errors, [](auto const& error) { return !!error; });
    if (failed == errors.end()) return;
    end_those_launched();
    throw Error(**failed);
  }
  // Called by any thread. The device stays the thread's current one.
  template <class Launch>
  static std::optional<Error> start(Launch const& launch, cudaStream_t stream) try {
    choose(launch.device());
    auto const status = launch.start(stream);
    if (status != cudaSuccess) check(status, "launch " + launch.name());
    return std::nullopt;
  } catch (...) {
    return caught("launch");
  }
  // The launched kernels wait for a device that has no kernel. Runs that this one is queued behind
  // do not, unless one of them has failed.
  void end_those_launched() const {
    auto const poison = [](LaunchGrid const& grid) {
      return std::atomic_ref(grid.control->poison);
    };
    while (!met(grids_.front().runs) && grids_.front().ended && poison(grids_.front()).load() == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    for (auto const& grid : grids_) poison(grid).store(Control::leave_the_end);
    for (auto* const launched : streams_)
      cudaStreamSynchronize(static_cast<cudaStream_t>(launched->native()));
  }

  std::unique_ptr<CudaLaunchResources> const own_resources_;  // null: the caller has given one
  std::vector<LaunchGrid> const grids_;
  std::vector<Stream*> streams_;  // the launch resources'
  std::vector<int> devices_;      // each one's
  std::string const kernel_;
  Clock::time_point watched_since_{};
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<LaunchResources> launch_resources() {
  return std::make_unique<CudaLaunchResources>();
}
void fit(LaunchSpec const& spec) {
  CudaLaunchResources own;
  launches_of(spec, resources_of(spec, spec.resources ? nullptr : &own));
}
std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const& spec) {
  return std::make_unique<CudaLaunch>(spec);
}
std::unique_ptr<LaunchGraph> make_graph(std::vector<LaunchSpec> const& steps) {
  CudaLaunchResources own;
  return std::make_unique<CudaGraph>(
      steps, resources_of(steps.front(), steps.front().resources ? nullptr : &own));
}

}  // namespace meshpost::cuda
