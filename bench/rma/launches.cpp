// What a launch costs beside the plainest that a user would write: CUDA's own cooperative launch of
// an empty kernel, waited for, queued, and replayed in a graph.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "worlds.hpp"

namespace {

using namespace meshpost;

constexpr int runs_of_graph = 20, replays = 50, many_launches = 200;

struct Empty {
  MESHPOST_FN void operator()(Rank&) const {}
};

using Moment = std::chrono::steady_clock::time_point;
double seconds_since(Moment begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Each of its runs, where it is launched and waited for again and again.
void graph_of_nothing(benchmark::State& state) {
  auto const world = bench::world(static_cast<u32>(state.range(0)));
  if (!world) {
    state.SkipWithError("needs more devices");
    return;
  }
  Graph graph;
  for (int i = 0; i < runs_of_graph; ++i) graph.add(Empty{}, bench::launch());
  for (int i = 0; i < 5; ++i) world->run(graph);
  for (auto _ : state) {
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < replays; ++i) world->run(graph);
    state.SetIterationTime(seconds_since(begin) / (replays * runs_of_graph));
  }
}
BENCHMARK(graph_of_nothing)
    ->ArgName("devices")
    ->Arg(1)
    ->Arg(2)
    ->Arg(8)
    ->Iterations(5)
    ->UseManualTime();

#if defined(__CUDACC__)

__global__ void empty() {}

// Streams of all GPUs, for launches of one block a multiprocessor.
class Raw {
 public:
  explicit Raw(int devices) : streams_(static_cast<std::size_t>(devices)) {
    for (int d = 0; d < devices; ++d) {
      cudaSetDevice(d);
      cudaStreamCreateWithFlags(&streams_[static_cast<std::size_t>(d)], cudaStreamNonBlocking);
    }
  }
  Raw(Raw const&) = delete;
  Raw& operator=(Raw const&) = delete;
  ~Raw() {
    for (auto const& stream : streams_) cudaStreamDestroy(stream);
  }
  template <class Use>
  void each(Use const& use) const {
    for (std::size_t d = 0; d < streams_.size(); ++d) {
      cudaSetDevice(static_cast<int>(d));
      use(d, streams_[d]);
    }
  }
  void launch() const {
    each([](std::size_t d, cudaStream_t stream) {
      int blocks = 0;
      cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, static_cast<int>(d));
      cudaLaunchCooperativeKernel(reinterpret_cast<void const*>(&empty),
                                  dim3(static_cast<unsigned>(blocks)), dim3(256), nullptr, 0,
                                  stream);
    });
  }
  void wait() const {
    each([](std::size_t, cudaStream_t stream) { cudaStreamSynchronize(stream); });
  }
  std::size_t size() const { return streams_.size(); }

 private:
  std::vector<cudaStream_t> streams_;
};

bool skipped(benchmark::State& state) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && state.range(0) <= devices &&
      bench::kind() == "cuda")
    return false;
  cudaGetLastError();
  state.SkipWithError("needs more GPUs");
  return true;
}

void raw_launch(benchmark::State& state) {
  if (skipped(state)) return;
  Raw const raw(static_cast<int>(state.range(0)));
  for (auto _ : state) raw.launch(), raw.wait();
}
BENCHMARK(raw_launch)->ArgName("devices")->Arg(1)->Arg(2)->Arg(8)->Iterations(500)->UseRealTime();

void raw_queue(benchmark::State& state) {
  if (skipped(state)) return;
  Raw const raw(static_cast<int>(state.range(0)));
  raw.launch(), raw.wait();
  for (auto _ : state) {
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < many_launches; ++i) raw.launch();
    raw.wait();
    state.SetIterationTime(seconds_since(begin) / many_launches);
  }
}
BENCHMARK(raw_queue)->ArgName("devices")->Arg(1)->Arg(2)->Arg(8)->Iterations(5)->UseManualTime();

// Kernels of several GPUs do not wait for each other here, as runs do.
void raw_graph(benchmark::State& state) {
  if (skipped(state)) return;
  Raw const raw(static_cast<int>(state.range(0)));
  std::vector<cudaGraphExec_t> graphs(raw.size());
  raw.each([&](std::size_t, cudaStream_t stream) {
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  });
  for (int i = 0; i < runs_of_graph; ++i) raw.launch();
  raw.each([&](std::size_t d, cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&graphs[d], graph, 0);
    cudaGraphDestroy(graph);
  });
  auto const replay = [&] {
    raw.each([&](std::size_t d, cudaStream_t stream) { cudaGraphLaunch(graphs[d], stream); });
    raw.wait();
  };
  for (int i = 0; i < 5; ++i) replay();
  for (auto _ : state) {
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < replays; ++i) replay();
    state.SetIterationTime(seconds_since(begin) / (replays * runs_of_graph));
  }
  for (auto const& graph : graphs) cudaGraphExecDestroy(graph);
}
BENCHMARK(raw_graph)->ArgName("devices")->Arg(1)->Arg(2)->Arg(8)->Iterations(5)->UseManualTime();

#endif

}  // namespace
