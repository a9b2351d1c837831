#pragma once
#include <gtest/gtest.h>
#include <meshpost/compat/dcuda.h>
#include <meshpost/rma/world.hpp>

#include <vector>

#include "support/errors.hpp"

// dCUDA programs of a test. The same sources are compiled by g++, and then run on a CPU device, and
// by nvcc, and then run on a GPU.

namespace meshpost::test {

/// One device with `ranks` ranks; a run that hangs should end before ctest's limit.
inline WorldOptions one_device(u32 ranks) {
  WorldOptions options;
  options.devices = compat::by_nvcc ? "cuda:0" : "cpu:1";
  options.ranks = ranks;
  options.deadline = std::chrono::seconds(15);
  return options;
}

/// A context for the life of this object.
class Program {
 public:
  explicit Program(dcuda_kernel_t kernel, u32 ranks = 4, int threads = 32) {
    dcuda_host_init(one_device(ranks), &context_, kernel, threads);
  }
  ~Program() { dcuda_host_finish(context_); }
  Program(Program const&) = delete;
  Program& operator=(Program const&) = delete;

  dcuda_host_context_handle context() const { return context_; }
  /// Runs the kernel with a copy of `data`; returns the changed copy.
  template <class T>
  T run(T data) const {
    dcuda_host_run(context_, &data, sizeof data);
    return data;
  }
  double run() const { return dcuda_host_run(context_); }

 private:
  dcuda_host_context_handle context_ = nullptr;
};

/// Memory of the device, zeroed.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    EXPECT_EQ(cudaMalloc(&data_, size * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, 0, size * sizeof(T)), cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray const&) = delete;
  DeviceArray& operator=(DeviceArray const&) = delete;

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> copy(size_);
    EXPECT_EQ(cudaMemcpy(copy.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return copy;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

}  // namespace meshpost::test
