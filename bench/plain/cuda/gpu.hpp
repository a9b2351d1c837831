#pragma once
// Memory of the first GPU, and a CUDA graph of all steps.
#include <meshpost/base/error.hpp>

#include <cuda_runtime.h>

#include <span>
#include <string>
#include <vector>

#include "plain/plain.hpp"

namespace plain::cuda {

inline void check(cudaError_t status, char const* operation) {
  if (status != cudaSuccess)
    throw meshpost::Error(meshpost::Kind::device_failed, operation, cudaGetErrorString(status),
                          "see the driver's log; without a GPU, take --on cpu");
}

/// An array in the memory of the GPU.
template <class Value>
class Array {
 public:
  explicit Array(u64 count) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(Value)), "allocate memory of the GPU");
  }
  explicit Array(std::vector<Value> const& values) : Array(values.size()) { write(values, 0); }
  Array(Array const&) = delete;
  Array& operator=(Array const&) = delete;
  ~Array() { static_cast<void>(cudaFree(data_)); }

  Value* data() const { return data_; }
  u64 count() const { return count_; }
  /// All bytes are 0xff: a float that was never written is no number.
  void poison() { fill(0xff); }
  void fill(int byte) {
    check(cudaMemset(data_, byte, count_ * sizeof(Value)), "cudaMemset");
    arrive();
  }
  void write(std::vector<Value> const& values, u64 offset) {
    check(
        cudaMemcpy(data_ + offset, values.data(), values.size() * sizeof(Value), cudaMemcpyDefault),
        "copy to the GPU");
    arrive();
  }
  std::vector<Value> read(u64 offset, u64 count) const {
    std::vector<Value> values(count);
    check(cudaMemcpy(values.data(), data_ + offset, count * sizeof(Value), cudaMemcpyDefault),
          "copy from the GPU");
    return values;
  }

 private:
  // The host may be told before the bytes are there, and the stream of a Graph waits for nobody.
  static void arrive() { check(cudaDeviceSynchronize(), "wait for the GPU"); }

  Value* data_ = nullptr;
  u64 count_;
};

/// Kernels that are recorded once and then launched together: each begins when the one before it
/// has ended, without the host.
class Graph {
 public:
  /// `record(stream)` launches the kernels.
  template <class Record>
  explicit Graph(Record const& record) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "record a CUDA graph");
    record(stream_);
    cudaGraph_t graph = nullptr;
    auto const launched = cudaGetLastError();
    check(cudaStreamEndCapture(stream_, &graph), "record a CUDA graph");
    check(launched, "record a kernel in a CUDA graph");
    auto const made = cudaGraphInstantiate(&graph_, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    check(made, "make a CUDA graph");
  }
  Graph(Graph const&) = delete;
  Graph& operator=(Graph const&) = delete;
  ~Graph() {
    static_cast<void>(cudaGraphExecDestroy(graph_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  void run() {
    check(cudaGraphLaunch(graph_, stream_), "launch a CUDA graph");
    check(cudaStreamSynchronize(stream_), "run a CUDA graph");
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

inline constexpr u32 block = 256;  ///< threads

/// Blocks for so many threads.
inline u32 blocks(u64 threads) { return static_cast<u32>((threads + block - 1) / block); }

__device__ inline u64 thread() { return u64{blockIdx.x} * block + threadIdx.x; }

}  // namespace plain::cuda
