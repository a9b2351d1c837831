// Particles as two OpenMP loops a step: collect the particles of each segment, then move them.
#include "plain/particles_of.hpp"
#include "plain/plain.hpp"

namespace plain::openmp {
namespace {

using namespace particles;

class Particles : public Version {
 public:
  explicit Particles(Problem const& problem)
      : problem_(problem),
        initial_(lists_of<float>(problem, initial_state<float>(problem), all_of(problem))),
        content_((Content<float>::size(problem.segments + 2, problem.chunks) + 15) / 16) {}

  void reset() override { lists_ = initial_; }

  void run() override {
    u32 const chunks = problem_.chunks, segments = problem_.segments;
    Lists<float> const lists{lists_.data(), chunks};
    Content<float> const content{reinterpret_cast<std::byte*>(content_.data()), segments + 2,
                                 chunks};
    auto const model = problem_.model<float>();
    Trouble first{};
#pragma omp parallel
    {
      Trouble trouble{};
      for (u32 step = 0; step < problem_.steps; ++step) {
#pragma omp for schedule(static)
        for (u32 unit = 0; unit < (segments + 2 * halo) * chunks; ++unit)
          collect_chunk(lists, unit / chunks, unit % chunks, content, unit / chunks - halo, step,
                        trouble);
#pragma omp for schedule(static)
        for (u32 unit = 0; unit < segments * chunks; ++unit) {
          u32 const s = unit / chunks;
          move_chunk(model, content, s + 1, unit % chunks, lists[s + halo], s, step, trouble);
        }
      }
#pragma omp critical
      first = earlier(first, trouble);
    }
    throw_for(first, problem_, static_cast<double>(model.reach));
  }

  std::vector<std::byte> result() override { return bytes_of(state_of(problem_, lists_.data())); }

 private:
  struct alignas(16) Aligned {
    std::byte bytes[16];
  };

  Problem const& problem_;
  std::vector<std::byte> initial_, lists_;
  std::vector<Aligned> content_;
};

}  // namespace

std::unique_ptr<Version> make(Problem const& problem) {
  return std::make_unique<Particles>(problem);
}

}  // namespace plain::openmp
