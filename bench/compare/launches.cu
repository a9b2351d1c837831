// Cost of launches of an empty kernel with plain CUDA: waited for, queued, and in a graph.
#include "peer.cuh"

namespace {

using namespace peer;

__global__ void empty() {}

/// Cooperative launches of one block a multiprocessor, on a stream of each GPU. Unlike in
/// meshpost's runs, several GPUs don't wait for each other.
class Launches {
 public:
  explicit Launches(int gpus) : streams_(gpus), graphs_(gpus) {
    each([](cudaStream_t& stream, auto&) {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    });
    each([](cudaStream_t stream, auto&) {
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "capture");
    });
    for (int i = 0; i < in_graph; ++i) launch();
    each([](cudaStream_t stream, cudaGraphExec_t& made) {
      cudaGraph_t graph = nullptr;
      check(cudaStreamEndCapture(stream, &graph), "capture");
      check(cudaGraphInstantiate(&made, graph, 0), "graph");
      check(cudaGraphDestroy(graph), "graph");
    });
    for (int i = 0; i < 5; ++i) launch_and_wait_us(), graph_us();
  }

  double launch_and_wait_us() {
    return host_us([&] { launch(), finish(); }, 500) / 500;
  }
  double queued_us() {
    return host_us([&] { launch(); }, 200) / 200;
  }
  double graph_us() {
    auto const replay = [&] {
      each([](cudaStream_t stream, cudaGraphExec_t graph) {
        check(cudaGraphLaunch(graph, stream), "graph");
      });
      finish();
    };
    return host_us(replay, 50) / 50 / in_graph;
  }

  int const blocks = multiprocessors();
  static constexpr int in_graph = 20;

 private:
  template <class Use>
  void each(Use const& use) {
    for (std::size_t gpu = 0; gpu < streams_.size(); ++gpu) {
      check(cudaSetDevice(static_cast<int>(gpu)), "cudaSetDevice");
      use(streams_[gpu], graphs_[gpu]);
    }
  }
  void launch() {
    each([&](cudaStream_t stream, auto&) {
      check(cudaLaunchCooperativeKernel(reinterpret_cast<void const*>(&empty), dim3(blocks),
                                        dim3(latency_threads), nullptr, 0, stream),
            "launch");
    });
  }
  void finish() {
    each([](cudaStream_t stream, auto&) { check(cudaStreamSynchronize(stream), "kernels"); });
  }
  template <class Once>
  double host_us(Once const& once, int times) {
    return peer::host_us(
        [&] {
          for (int i = 0; i < times; ++i) once();
        },
        [&] { finish(); });
  }

  std::vector<cudaStream_t> streams_;
  std::vector<cudaGraphExec_t> graphs_;
};

void measure(Arguments const& given) {
  Launches launches(given.gpus);
  auto const row = [&](char const* what, char const* timed, auto const& once) {
    print({"CUDA launches", what, timed, given.gpus, launches.blocks},
          repeat(given.repetitions, once));
  };
  row("launch", "cudaLaunchCooperativeKernel, cudaStreamSynchronize; host's clock",
      [&] { return launches.launch_and_wait_us(); });
  row("launch_queued", "200 cudaLaunchCooperativeKernel, one cudaStreamSynchronize",
      [&] { return launches.queued_us(); });
  row("launch_graph", "graphs of 20 cooperative launches, each graph waited for",
      [&] { return launches.graph_us(); });
}

}  // namespace

int main(int count, char** words) {
  Arguments const given(count, words);
  if (given.launches) measure(given);
}
