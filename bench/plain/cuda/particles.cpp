// Particles as two kernels a step: collect the particles of each segment, then move them. A warp
// takes 32 slots.
#include "plain/particles_of.hpp"

#include "gpu.hpp"

namespace plain::cuda {
namespace {

using namespace particles;

/// All segments in the memory of the GPU.
struct Domain {
  Lists<float> lists;
  Content<float> content;
  Trouble* troubles;  ///< one for each thread
  Model<float> model;
};

__global__ void __launch_bounds__(block) collect(Domain const on, u32 step) {
  u32 const unit = static_cast<u32>(thread() / lanes), chunks = on.content.chunks;
  u32 const count = on.content.segments - 2 + 2 * halo, j = unit / chunks;
  if (j < count)
    collect_chunk(on.lists, j, unit % chunks, on.content, j - halo, step, on.troubles[thread()]);
}

__global__ void __launch_bounds__(block) move_all(Domain const on, u32 step) {
  u32 const unit = static_cast<u32>(thread() / lanes), chunks = on.content.chunks;
  u32 const s = unit / chunks;
  if (s < on.content.segments - 2)
    move_chunk(on.model, on.content, s + 1, unit % chunks, on.lists[s + halo], s, step,
               on.troubles[thread()]);
}

class Particles : public Version {
 public:
  explicit Particles(Problem const& problem)
      : problem_(problem),
        initial_(lists_of<float>(problem, initial_state<float>(problem), all_of(problem))),
        lists_(initial_.size()),
        content_(Content<float>::size(problem.segments + 2, problem.chunks)),
        troubles_(u64{blocks(threads(problem.segments + 2 * halo))} * block),
        graph_([&](auto stream) {
          u32 const segments = problem.segments;
          Domain const on{{lists_.data(), problem.chunks},
                          {content_.data(), segments + 2, problem.chunks},
                          troubles_.data(),
                          problem.model<float>()};
          for (u32 step = 0; step < problem.steps; ++step) {
            collect<<<blocks(threads(segments + 2 * halo)), block, 0, stream>>>(on, step);
            move_all<<<blocks(threads(segments)), block, 0, stream>>>(on, step);
          }
        }) {}

  void reset() override {
    lists_.write(initial_, 0);
    content_.poison();
    troubles_.fill(0);
  }
  void run() override { graph_.run(); }
  std::vector<std::byte> result() override {
    Trouble first{};
    for (auto const& one : troubles_.read(0, troubles_.count())) first = earlier(first, one);
    throw_for(first, problem_, static_cast<double>(problem_.model<float>().reach));
    auto lists = lists_.read(0, lists_.count());
    return bytes_of(state_of(problem_, lists.data()));
  }

 private:
  /// A warp for each chunk of so many segments.
  u64 threads(u32 segments) const { return u64{segments} * problem_.chunks * lanes; }

  Problem const& problem_;
  std::vector<std::byte> initial_;
  Array<std::byte> lists_, content_;
  Array<Trouble> troubles_;
  Graph graph_;
};

}  // namespace

std::unique_ptr<Version> make(Problem const& problem) {
  return std::make_unique<Particles>(problem);
}

}  // namespace plain::cuda
