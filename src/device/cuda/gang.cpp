#include "device/cuda/gang.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "device/cuda/check.hpp"
#include "device/cuda/gpu_launch.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/stream.hpp"

namespace meshpost::cuda {
namespace {

CudaCrew& crew_of(GangSpec const& spec, CudaCrew* own) {
  return own ? *own : static_cast<CudaCrew&>(*spec.crew);
}

class CudaGang : public Gang {
 public:
  explicit CudaGang(GangSpec const& spec)
      : own_crew_(spec.crew ? nullptr : std::make_unique<CudaCrew>()), grids_(spec.grids) {
    auto& crew = crew_of(spec, own_crew_.get());
    crew.refuse_blocking_launches(spec.image.name);
    if (spec.graph) launch_all(spec, static_cast<CudaGraph&>(*spec.graph).launches(), crew);
    else launch_all(spec, launches_of(spec, crew), crew);
  }

  void doze(std::chrono::microseconds patience) override {
    using clock = std::chrono::steady_clock;
    constexpr auto attentive = std::chrono::microseconds(100);
    auto const start = clock::now();
    for (u32 looks = 1; !met() && (looks % 256 != 0 || !finished()); ++looks) {
      auto const waited = clock::now() - start;
      if (waited >= patience) return;
      if (waited >= attentive) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  std::vector<std::shared_ptr<Event>> ends() override {
    std::vector<std::shared_ptr<Event>> events;
    for (auto const& stream : streams_) events.push_back(stream->record());
    return events;
  }
  // A kernel that did not come to its end has to be asked for; others on the stream may be behind
  // it then, and end without having begun.
  bool finished() override {
    if (met()) return true;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      auto const status = cudaStreamQuery(static_cast<cudaStream_t>(streams_[i]->native()));
      if (status == cudaErrorNotReady) return false;
      if (status != cudaSuccess && !failure_) {
        cudaGetLastError();
        failure_ = to_error(status, names_[i]);
      }
    }
    return true;
  }
  std::optional<Error> failure() override {
    finished();
    return failure_;
  }

 private:
  // Of all grids: their ranks have met at the end of that run.
  bool met(u32 before = 0) const {
    return std::ranges::all_of(grids_, [before](Grid const& grid) { return grid.is_over(before); });
  }
  template <class Launch>
  void launch_all(GangSpec const& spec, std::vector<Launch> const& launches, CudaCrew& crew) {
    auto& order = LaunchOrder::instance();
    auto const launching = order.take();
    for (auto const& launch : launches) {
      Current const current(launch.device());
      auto& stream = crew.stream(launch.device());
      streams_.push_back(&stream);
      order.put_last(launch.device(), stream);
      for (auto const& event : spec.after) stream.wait(event);
    }
    // In the stream's order: other launches of the same graph may be under way.
    for (std::size_t i = 0; spec.graph && i < grids_.size(); ++i)
      streams_[i]->store(grids_[i].base, grids_[i].run - grids_[i].runs);
    for (std::size_t i = 0; i < launches.size(); ++i) start(launches[i], *streams_[i]);
  }
  template <class Launch>
  void start(Launch const& launch, Stream& stream) {
    Current const current(launch.device());
    auto const status = launch.start(static_cast<cudaStream_t>(stream.native()));
    if (status != cudaSuccess) {
      // The devices launched so far wait for this one: end them before saying so. Not so runs that
      // this one is queued behind, unless one of them has failed.
      auto const poison = [](Grid const& grid) { return std::atomic_ref(grid.control->poison); };
      while (!met(grids_.front().runs) && grids_.front().ended &&
             poison(grids_.front()).load() == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      for (auto const& grid : grids_) poison(grid).store(Control::leave_the_end);
      for (auto* const launched : streams_)
        cudaStreamSynchronize(static_cast<cudaStream_t>(launched->native()));
      check(status, "launch " + launch.name());
    }
    names_.push_back(launch.name());
  }

  std::unique_ptr<CudaCrew> const own_crew_;  // null: it has been given one
  std::vector<Grid> const grids_;
  std::vector<Stream*> streams_;  // the crew's
  std::vector<std::string> names_;
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<Crew> crew() { return std::make_unique<CudaCrew>(); }
void fit(GangSpec const& spec) {
  CudaCrew own;
  launches_of(spec, crew_of(spec, spec.crew ? nullptr : &own));
}
std::unique_ptr<Gang> launch(GangSpec const& spec) { return std::make_unique<CudaGang>(spec); }
std::unique_ptr<GangGraph> make_graph(std::vector<GangSpec> const& steps) {
  CudaCrew own;
  return std::make_unique<CudaGraph>(steps,
                                     crew_of(steps.front(), steps.front().crew ? nullptr : &own));
}

}  // namespace meshpost::cuda
