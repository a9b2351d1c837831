// BLAS on GPUs: cuBLAS, and a kernel for an operation that it lacks. Compiled by nvcc.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "blas.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::blas {
namespace {

void check(cudaError_t status, std::string const& what) {
  if (status != cudaSuccess)
    throw Error(Kind::device_failed, what, cudaGetErrorString(status), "see the first such error");
}
void check(cublasStatus_t status, std::string const& what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(
        status == CUBLAS_STATUS_ALLOC_FAILED ? Kind::out_of_memory : Kind::device_failed, what,
        std::string(cublasGetStatusName(status)) + ": " + cublasGetStatusString(status),
        status == CUBLAS_STATUS_ALLOC_FAILED ? "use smaller matrices" : "see the first such error");
}

// Makes a device the calling thread's current one.
class Current {
 public:
  explicit Current(int device) {
    check(cudaGetDevice(&before_), "ask for the current GPU");
    if (device != before_) check(cudaSetDevice(device), "choose a GPU");
    changed_ = device != before_;
  }
  ~Current() {
    if (changed_) cudaSetDevice(before_);
  }
  Current(Current const&) = delete;
  Current& operator=(Current const&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

template <class T, class Sum>
__global__ void add(u64 count, Sum a, T const* x, Sum b, T* y) {
  u64 const step = u64{gridDim.x} * blockDim.x;
  for (u64 i = u64{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    y[i] = T(a * Sum(x[i]) + b * Sum(y[i]));
}

class CudaBlas : public Blas::Implementation {
 public:
  CudaBlas(Device& device, Stream& stream)
      : device_(static_cast<int>(device.index())),
        name_(device.name()),
        blocks_(device.info().processors * 8),
        stream_(static_cast<cudaStream_t>(stream.native())) {
    Current const current(device_);
    check(cublasCreate(&handle_), "start cuBLAS on " + name_);
    check(cublasSetStream(handle_, stream_), "give cuBLAS a stream of " + name_);
  }
  ~CudaBlas() override { cublasDestroy(handle_); }
  CudaBlas(CudaBlas const&) = delete;
  CudaBlas& operator=(CudaBlas const&) = delete;

  void gemm(Type type, Shape shape, double alpha, ConstMatrix a, ConstMatrix b, double beta,
            Matrix c) override {
    Current const current(device_);
    auto const bits = type == Type::float64 ? CUDA_R_64F
                      : type == Type::bf16  ? CUDA_R_16BF
                                            : CUDA_R_32F;
    auto const sums = type == Type::float64 ? CUBLAS_COMPUTE_64F
                      : type == Type::tf32  ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    auto const alpha_float = static_cast<float>(alpha), beta_float = static_cast<float>(beta);
    bool const wide = type == Type::float64;  // scalars are of the type of the sums
    void const* const factor = wide ? static_cast<void const*>(&alpha) : &alpha_float;
    void const* const keep = wide ? static_cast<void const*>(&beta) : &beta_float;
    auto const m = static_cast<int64_t>(shape.m), n = static_cast<int64_t>(shape.n),
               k = static_cast<int64_t>(shape.k);
    auto const stride = [](u64 elements) {
      return static_cast<int64_t>(std::max<u64>(1, elements));
    };
    check(cublasGemmEx_64(handle_, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, factor, a.data, bits,
                          stride(a.stride), b.data, bits, stride(b.stride), keep, c.data, bits,
                          stride(c.stride), sums, CUBLAS_GEMM_DEFAULT),
          "multiply " + std::to_string(m) + "x" + std::to_string(k) + " by " + std::to_string(k) +
              "x" + std::to_string(n) + " on " + name_);
  }

  void axpby(Type type, u64 count, double a, void const* x, double b, void* y) override {
    Current const current(device_);
    constexpr u32 threads = 256;
    auto const blocks = static_cast<u32>(std::min<u64>((count + threads - 1) / threads, blocks_));
    auto const launch = [&]<class T, class Sum>(T const* from, T* to, Sum) {
      add<T, Sum><<<blocks, threads, 0, stream_>>>(count, static_cast<Sum>(a), from,
                                                   static_cast<Sum>(b), to);
    };
    if (type == Type::float64) launch(static_cast<double const*>(x), static_cast<double*>(y), 0.0);
    else if (type == Type::bf16)
      launch(static_cast<__nv_bfloat16 const*>(x), static_cast<__nv_bfloat16*>(y), 0.f);
    else launch(static_cast<float const*>(x), static_cast<float*>(y), 0.f);
    check(cudaGetLastError(), "add " + std::to_string(count) + " elements on " + name_);
  }

 private:
  int device_;
  std::string name_;
  u32 blocks_;
  cudaStream_t stream_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<Blas::Implementation> on_cuda(Device& device, Stream& stream) {
  return std::make_unique<CudaBlas>(device, stream);
}

}  // namespace meshpost::blas
