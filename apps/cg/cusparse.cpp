// Products by cuSPARSE. Compiled by nvcc.
#include <cuda_runtime.h>
#include <cusparse.h>

#include "plain.hpp"
#include "stream_product.hpp"

namespace cg {

using namespace meshpost;

namespace {

void check(cusparseStatus_t status, std::string const& what) {
  if (status != CUSPARSE_STATUS_SUCCESS)
    throw Error(status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES ? Kind::out_of_memory
                                                                 : Kind::device_failed,
                what, cusparseGetErrorString(status), "see the first such error");
}

// Makes a device the calling thread's current one: cuSPARSE needs that.
void make_current(Device const& device) {
  if (auto const status = cudaSetDevice(static_cast<int>(device.index())); status != cudaSuccess)
    throw Error(Kind::device_failed, "choose " + device.name(), cudaGetErrorString(status),
                "see the first such error");
}

class CusparseProduct : public StreamProduct {
 public:
  CusparseProduct(std::shared_ptr<Device> device, Stream& stream, Block const& block)
      : device_(std::move(device)), stream_(stream), block_(block) {
    make_current(*device_);
    try {
      start();
    } catch (...) {
      end();
      throw;
    }
  }
  ~CusparseProduct() override { end(); }
  CusparseProduct(CusparseProduct const&) = delete;
  CusparseProduct& operator=(CusparseProduct const&) = delete;

  void enqueue(double const* x, double* y) override {
    make_current(*device_);
    double* const result = shifted_ ? y + shift_ : stored_.as<double>();
    check(cusparseDnVecSetValues(x_, const_cast<double*>(x)), "cusparseDnVecSetValues");
    check(cusparseDnVecSetValues(y_, result), "cusparseDnVecSetValues");
    check(cusparseSpMV(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_, x_, &zero_, y_,
                       CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, work_.data()),
          "cusparseSpMV on " + device_->name());
    if (!shifted_)
      apps::enqueue(*device_, stream_, block_.count,
                    Scatter{result, block_.rows.place, block_.count, y});
  }

 private:
  void start() {
    check(cusparseCreate(&handle_), "start cuSPARSE on " + device_->name());
    check(cusparseSetStream(handle_, static_cast<cudaStream_t>(stream_.native())),
          "give cuSPARSE a stream of " + device_->name());
    // If its places are consecutive, a block's results go to them at once.
    std::vector<u32> places(block_.count);
    device_->read(places.data(), block_.rows.place, Bytes{places.size() * sizeof(u32)});
    shift_ = places.front();
    shifted_ = places.back() - places.front() + 1 == places.size();  // they ascend
    if (!shifted_)
      stored_ = device_->allocate(Bytes{block_.count * sizeof(double)}, MemoryKind::device);
    auto const rows = static_cast<int64_t>(block_.count);
    auto const columns = static_cast<int64_t>(block_.columns);
    check(
        cusparseCreateCsr(&matrix_, rows, columns, static_cast<int64_t>(block_.entries),
                          const_cast<u32*>(block_.rows.begin), const_cast<u32*>(block_.rows.column),
                          const_cast<double*>(block_.rows.value), CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
        "cusparseCreateCsr");
    // Any addresses; enqueue() sets those of the vectors.
    auto* const some = const_cast<double*>(block_.rows.value);
    check(cusparseCreateDnVec(&x_, columns, some, CUDA_R_64F), "cusparseCreateDnVec");
    check(cusparseCreateDnVec(&y_, rows, some, CUDA_R_64F), "cusparseCreateDnVec");
    size_t bytes = 0;
    check(cusparseSpMV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_, x_,
                                  &zero_, y_, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes),
          "cusparseSpMV_bufferSize");
    if (bytes > 0) work_ = device_->allocate(Bytes{bytes}, MemoryKind::device);
  }
  void end() {
    if (y_) cusparseDestroyDnVec(y_);
    if (x_) cusparseDestroyDnVec(x_);
    if (matrix_) cusparseDestroySpMat(matrix_);
    if (handle_) cusparseDestroy(handle_);
  }

  std::shared_ptr<Device> device_;
  Stream& stream_;
  Block block_;
  bool shifted_ = false;
  u64 shift_ = 0;
  Allocation stored_, work_;
  double const one_ = 1, zero_ = 0;
  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, y_ = nullptr;
};

}  // namespace

bool has_cusparse() { return true; }

std::unique_ptr<StreamProduct> make_cusparse_product(std::shared_ptr<Device> device, Stream& stream,
                                                     Block const& block) {
  return std::make_unique<CusparseProduct>(std::move(device), stream, block);
}

}  // namespace cg
