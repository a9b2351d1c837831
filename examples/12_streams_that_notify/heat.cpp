// Heat flows along a rod. Each device has a piece of it. The host queues all steps on the devices'
// streams: a kernel of the user, puts to the neighbours, and a wait for theirs. Then it goes away.
#include <meshpost/meshpost.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace mp = meshpost;

namespace {

constexpr mp::u64 cells = 1000;  // of a device, plus one of each neighbour
constexpr int steps = 200;
constexpr mp::Tag left{0}, right{1};

// One step of a piece, by a plain kernel.
struct Step {
  double const* now;
  double* next;
  MESHPOST_FN void operator()(mp::u64 first, mp::u64 stride) const {
    for (mp::u64 i = 1 + first; i <= cells; i += stride)
      next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
  }
};

#if defined(__CUDACC__)
template <class Work>
__global__ void kernel(Work const work) {
  work(blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
#endif

// Work on a stream: a kernel on a GPU, a function on a CPU device.
template <class Work>
void launch(mp::Device const& device, mp::StreamEndpoint const& end, Work const& work) {
#if defined(__CUDACC__)
  if (end.native()) {
    cudaSetDevice(static_cast<int>(device.index()));
    kernel<<<4, 256, 0, static_cast<cudaStream_t>(end.native())>>>(work);
    return;
  }
#endif
  static_cast<void>(device);
  end.stream().call([work] { work(0, 1); });
}

// The same in one piece, on the host.
std::vector<double> reference(mp::u64 all) {
  std::vector<double> now(all + 2, 0.0), next = now;
  now[1] = 1000;
  for (int step = 0; step < steps; ++step) {
    for (mp::u64 i = 1; i <= all; ++i)
      next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
    now.swap(next);
  }
  return now;
}

int run() {
  mp::WorldOptions options;
  options.ranks = 1;  // a part of the window for each device
  mp::World world(options);
  auto const rod = world.window<double>(2 * (cells + 2), mp::Tags{2}, "rod");  // two copies
  mp::u32 const first = world.first_rank(), devices = world.device_count();
  auto const mine = static_cast<mp::u32>(world.devices().size());
  double const heat = 1000;
  if (first == 0) rod.write(mp::RankId{0}, 1, std::span(&heat, 1));

  // [streams]
  std::vector<mp::StreamEndpoint> ends;  // stream 0 of each device
  for (mp::u32 d = 0; d < mine; ++d) ends.emplace_back(world, d);
  for (int step = 0; step < steps; ++step) {
    mp::u64 const now = step % 2 * (cells + 2), next = (step + 1) % 2 * (cells + 2);
    for (mp::u32 d = 0; d < mine; ++d) {
      auto& end = ends[d];
      mp::u32 const here = first + d;
      auto const part = rod.part(mp::RankId{here});
      launch(*world.devices()[d], end, Step{part.data() + now, part.data() + next});
      if (here > 0)
        end.put_notify(rod.at(mp::RankId{here - 1}, next + cells + 1), part.subspan(next + 1, 1),
                       mp::StreamId{here - 1, 0}, right);
      if (here + 1 < devices)
        end.put_notify(rod.at(mp::RankId{here + 1}, next), part.subspan(next + cells, 1),
                       mp::StreamId{here + 1, 0}, left);
      if (here > 0) end.wait(rod, left);
      if (here + 1 < devices) end.wait(rod, right);
    }
  }
  for (auto& end : ends) end.synchronize();
  // [/streams]

  auto const expected = reference(cells * devices);
  bool same = true;
  for (mp::u32 here = first; here < first + mine; ++here) {
    auto const got = rod.read(mp::RankId{here});
    mp::u64 const at = steps % 2 * (cells + 2);
    for (mp::u64 i = 1; i <= cells; ++i)
      same &= std::abs(got[at + i] - expected[here * cells + i]) < 1e-12;
  }
  std::printf("%d steps on %u devices: %s\n", steps, devices, same ? "as in one piece" : "WRONG");
  return same ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (mp::Error const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
