// Communication of a two-model program by NCCL: on streams, the whole loop in a CUDA graph of each
// GPU. So the host only launches the graphs, and nothing waits for it.
#include "kinds.hpp"

#if defined(MESHPOST_STUDY_NCCL)
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>

namespace meshpost::apps {
namespace {

void check(ncclResult_t status, char const* what) {
  if (status != ncclSuccess)
    throw Error(Kind::device_failed, what, ncclGetErrorString(status), "set NCCL_DEBUG=INFO");
}
void check(cudaError_t status, char const* what) {
  if (status != cudaSuccess)
    throw Error(Kind::device_failed, what, cudaGetErrorString(status), "see the driver's log");
}

struct Graph {
  Graph() = default;
  Graph(Graph const&) = delete;
  Graph& operator=(Graph const&) = delete;
  ~Graph() {
    if (ready) cudaGraphExecDestroy(ready);
  }
  cudaGraphExec_t ready = nullptr;
};

/// Operations that NCCL starts together. After an error in between, the group is closed, too.
class Group {
 public:
  Group() { check(ncclGroupStart(), "ncclGroupStart"); }
  ~Group() {
    if (open_) ncclGroupEnd();
  }
  Group(Group const&) = delete;
  Group& operator=(Group const&) = delete;
  void end() {
    open_ = false;
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

 private:
  bool open_ = true;
};

class Nccl : public Exchange {
 public:
  explicit Nccl(std::vector<Part> parts)
      : Exchange(std::move(parts), 0), loops_(this->parts().size()), talks_(this->parts().size()) {
    std::vector<int> gpus;
    for (auto const& part : this->parts()) gpus.push_back(static_cast<int>(part.device->index()));
    comms_.resize(gpus.size());
    check(ncclCommInitAll(comms_.data(), static_cast<int>(gpus.size()), gpus.data()),
          "ncclCommInitAll");
    for (auto const& part : this->parts())
      words_.push_back(part.device->allocate(Bytes{sizeof(float)}, MemoryKind::device));
  }
  ~Nccl() override {
    loops_.clear();  // NCCL waits for the graphs that use a communicator
    talks_.clear();
    for (auto const comm : comms_) ncclCommDestroy(comm);
  }
  std::string name() const override { return "nccl"; }
  double play() override { return launch(loops_); }
  double communication() override { return lists_.empty() ? 0 : launch(talks_); }

 private:
  bool on_streams() const override { return true; }
  void meet() override {}

  void carry(std::span<Message const> messages) override {
    if (recording_) lists_.emplace_back(messages.begin(), messages.end());
    Group group;
    for (auto const& message : messages) {
      check(ncclSend(part(message.from).memory.data() + message.source, message.size, ncclChar,
                     static_cast<int>(message.to), comms_[message.from], native(message.from)),
            "ncclSend");
      check(ncclRecv(part(message.to).memory.data() + message.target, message.size, ncclChar,
                     static_cast<int>(message.from), comms_[message.to], native(message.to)),
            "ncclRecv");
    }
    group.end();
  }

  // A GPU goes on when all have come to the reduction of a word.
  void do_barrier() override {
    if (parts().size() == 1) return;  // its stream keeps the order
    if (recording_) lists_.emplace_back();
    Group group;
    for (u32 d = 0; d < parts().size(); ++d)
      check(ncclAllReduce(words_[d].data(), words_[d].data(), 1, ncclFloat, ncclMax, comms_[d],
                          native(d)),
            "ncclAllReduce");
    group.end();
  }

  // The loop as a graph, and its messages alone as another one, to time them. The loop's first
  // steps run before, because NCCL makes connections at the first use of each.
  void do_prepare() override {
    for (u32 step = 0; step < std::min(steps_, 2u); ++step) body_(step);
    synchronize();
    lists_.clear();
    recording_ = true;
    capture(loops_, [&] {
      for (u32 step = 0; step < steps_; ++step) body_(step);
    });
    recording_ = false;
    capture(talks_, [&] {
      for (auto const& list : lists_)
        if (list.empty()) do_barrier();
        else carry(list);
    });
  }

  template <class Work>
  void capture(std::vector<Graph>& graphs, Work const& work) {
    for (u32 d = 0; d < parts().size(); ++d)
      check(cudaStreamBeginCapture(native(d), cudaStreamCaptureModeRelaxed), "begin a capture");
    try {
      work();
    } catch (...) {  // the streams must not stay in their captures
      for (u32 d = 0; d < parts().size(); ++d)
        if (cudaGraph_t graph = nullptr; cudaStreamEndCapture(native(d), &graph) == cudaSuccess)
          cudaGraphDestroy(graph);
      throw;
    }
    for (u32 d = 0; d < parts().size(); ++d) {
      cudaGraph_t graph = nullptr;
      check(cudaStreamEndCapture(native(d), &graph), "end a capture");
      auto& ready = graphs[d].ready;
      if (ready) check(cudaGraphExecDestroy(std::exchange(ready, nullptr)), "destroy a graph");
      check(cudaSetDevice(static_cast<int>(parts()[d].device->index())), "cudaSetDevice");
      auto const status = cudaGraphInstantiate(&ready, graph, 0);
      cudaGraphDestroy(graph);
      check(status, "instantiate a graph");
      check(cudaGraphUpload(ready, native(d)), "upload a graph");
    }
    synchronize();
  }

  double launch(std::vector<Graph> const& graphs) {
    double const begin = now();
    for (u32 d = 0; d < parts().size(); ++d) {
      check(cudaSetDevice(static_cast<int>(parts()[d].device->index())), "cudaSetDevice");
      check(cudaGraphLaunch(graphs[d].ready, native(d)), "launch a graph");
    }
    synchronize();
    return now() - begin;
  }

  cudaStream_t native(u32 device) const {
    return static_cast<cudaStream_t>(part(device).stream->native());
  }

  std::vector<ncclComm_t> comms_;
  std::vector<Graph> loops_, talks_;         // by device
  std::vector<Allocation> words_;            // for barriers, by device
  std::vector<std::vector<Message>> lists_;  // of the loop, in order; empty: a barrier
  bool recording_ = false;
};

}  // namespace

bool has_nccl() { return true; }
std::unique_ptr<Exchange> make_nccl(std::vector<Part> parts) {
  return std::make_unique<Nccl>(std::move(parts));
}

}  // namespace meshpost::apps

#else

namespace meshpost::apps {

bool has_nccl() { return false; }
std::unique_ptr<Exchange> make_nccl(std::vector<Part>) { return nullptr; }

}  // namespace meshpost::apps

#endif
