#include "device/cuda/stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "device/cuda/check.hpp"
#include "device/cuda/clock.hpp"
#include "device/cuda/stream_kernels.hpp"
#include "meshpost/device/stream_exchange.hpp"

namespace meshpost::cuda {
namespace {

class CudaEvent : public Event {
 public:
  CudaEvent(int device, cudaStream_t stream) : device_(device) {
    Current const current(device);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create an event");
    check(cudaEventRecord(event_, stream), "record an event");
  }
  ~CudaEvent() override {
    Current const any;
    cudaEventDestroy(event_);
  }
  CudaEvent(CudaEvent const&) = delete;
  CudaEvent& operator=(CudaEvent const&) = delete;

  bool done() override {
    Current const any;
    auto const status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    if (status != cudaSuccess) fail(status);
    return true;
  }
  void wait() override {
    Current const any;
    if (auto const status = cudaEventSynchronize(event_); status != cudaSuccess) fail(status);
  }
  void then(std::function<void()> action) override {
    wait();
    action();
  }
  cudaEvent_t native() const { return event_; }

 private:
  void fail(cudaError_t status) const {
    check(status, fmt::format("wait for the work of cuda:{}", device_));
  }
  int device_;
  cudaEvent_t event_ = nullptr;
};

// Words that streams wait for. Each is used once and never given back, because nobody knows when
// the stream has passed it. The cost is 4 bytes for each wait for something that is not CUDA's own.
u32* new_flag() {
  constexpr u32 flags = 16384;
  static std::mutex mutex;
  static u32* block = nullptr;
  static u32 used = flags;
  std::scoped_lock const lock(mutex);
  if (used == flags) {
    check(cudaHostAlloc(reinterpret_cast<void**>(&block), flags * sizeof(u32),
                        cudaHostAllocPortable | cudaHostAllocMapped),
          "make room for streams to wait");
    std::memset(block, 0, flags * sizeof(u32));
    used = 0;
  }
  return block + used++;
}

// CUDA's calls for rows take pitches up to this.
constexpr u64 largest_pitch = (u64{1} << 31) - 1;

cudaError_t copy_rows(PitchedCopy const& rows, cudaStream_t stream) {
  auto status = cudaSuccess;
  u64 const pitches[] = {rows.target_row, rows.source_row, rows.width};
  if (std::ranges::max(pitches) > largest_pitch) {
    for_each_row(rows, [&](void* target, void const* source, u64 width) {
      if (status == cudaSuccess)
        status = cudaMemcpyAsync(target, source, width, cudaMemcpyDefault, stream);
    });
    return status;
  }
  // For CUDA a slice is whole rows. Other slices go one by one.
  bool const whole = rows.slices > 1 && rows.target_slice % rows.target_row == 0 &&
                     rows.source_slice % rows.source_row == 0;
  if (whole) {
    cudaMemcpy3DParms all{};
    all.srcPtr = {const_cast<void*>(rows.source), rows.source_row, rows.width,
                  rows.source_slice / rows.source_row};
    all.dstPtr = {rows.target, rows.target_row, rows.width, rows.target_slice / rows.target_row};
    all.extent = {rows.width, rows.rows, rows.slices};
    all.kind = cudaMemcpyDefault;
    return cudaMemcpy3DAsync(&all, stream);
  }
  for (u64 slice = 0; slice < rows.slices && status == cudaSuccess; ++slice)
    status = cudaMemcpy2DAsync(static_cast<char*>(rows.target) + slice * rows.target_slice,
                               rows.target_row,
                               static_cast<char const*>(rows.source) + slice * rows.source_slice,
                               rows.source_row, rows.width, rows.rows, cudaMemcpyDefault, stream);
  return status;
}

class CudaStream : public Stream {
 public:
  CudaStream(int device, bool urgent) : device_(device), owned_(true) {
    Current const current(device_);
    int least = 0, greatest = 0;
    if (urgent) check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "create a stream");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
          "create a stream");
  }
  CudaStream(int device, cudaStream_t adopted) : device_(device), stream_(adopted), owned_(false) {}
  ~CudaStream() override {
    Current const any;
    if (owned_) cudaStreamDestroy(stream_);
  }
  CudaStream(CudaStream const&) = delete;
  CudaStream& operator=(CudaStream const&) = delete;

  void copy(void* target, void const* source, Bytes size) override {
    Current const current(device_);
    auto const status = cudaMemcpyAsync(target, source, size, cudaMemcpyDefault, stream_);
    // Make the text only if it is needed: it takes as long as the call.
    if (status != cudaSuccess)
      check(status, fmt::format("copy {} bytes on cuda:{}", size.value, device_));
  }
  void copy(PitchedCopy const& rows) override {
    Current const current(device_);
    check(copy_rows(rows, stream_), fmt::format("copy {} rows of {} bytes on cuda:{}",
                                                rows.rows * rows.slices, rows.width, device_));
  }
  void fill(void* target, u8 value, Bytes size) override {
    Current const current(device_);
    check(cudaMemsetAsync(target, value, size, stream_),
          fmt::format("fill {} bytes on cuda:{}", size.value, device_));
  }
  void call(std::function<void()> work) override {
    Current const current(device_);
    auto* const kept = new std::function<void()>(std::move(work));
    auto const invoke = [](void* data) {
      std::unique_ptr<std::function<void()>> const function(
          static_cast<std::function<void()>*>(data));
      (*function)();
    };
    check(cudaLaunchHostFunc(stream_, invoke, kept), "call a host function in a stream");
  }
  void store(u32* word, u32 value) override {
    Current const current(device_);
    check(driver().stream_write_value(stream_, reinterpret_cast<CUdeviceptr>(word), value,
                                      CU_STREAM_WRITE_VALUE_DEFAULT),
          "store a word in the order of a stream");
  }
  void await_word(u32 const* word, u32 value) override {
    Current const current(device_);
    check(driver().stream_wait_value(stream_, reinterpret_cast<CUdeviceptr>(word), value,
                                     CU_STREAM_WAIT_VALUE_GEQ),
          "make a stream wait for a word");
  }
  std::shared_ptr<Event> record() override { return std::make_shared<CudaEvent>(device_, stream_); }
  void wait(std::shared_ptr<Event> event) override {
    Current const current(device_);
    if (auto const* const own = dynamic_cast<CudaEvent*>(event.get())) {
      check(cudaStreamWaitEvent(stream_, own->native(), 0), "make a stream wait for an event");
      return;
    }
    // A memory operation of the device, not a host function. A host function that blocks would hold
    // up CUDA's other calls. The event may depend on some of these.
    u32* const flag = new_flag();
    check(driver().stream_wait_value(stream_, reinterpret_cast<CUdeviceptr>(flag), 1,
                                     CU_STREAM_WAIT_VALUE_GEQ),
          "make a stream wait for the host");
    event->then([flag] { std::atomic_ref(*flag).store(1, std::memory_order_release); });
  }
  void do_synchronize() override {
    Current const current(device_);
    check(cudaStreamSynchronize(stream_), fmt::format("wait for a stream of cuda:{}", device_));
  }
  void* native() override { return stream_; }
  bool captures() override {
    Current const current(device_);
    auto status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream_, &status), "ask if a stream is captured");
    return status != cudaStreamCaptureStatusNone;
  }
  void stamp(u64* word) override {
    Current const current(device_);
    finish(store_clock(stream_, word), "store the clock in");
  }
  void put(StreamWords const& words, StreamPut const& put) override {
    Current const current(device_);
    finish(cuda::put(stream_, words, put), "put from");
  }
  void await(StreamWords const& words, std::span<AwaitedCounter const> counters) override {
    Current const current(device_);
    finish(cuda::await(stream_, words, counters), "wait on");
  }
  void post(StreamWords const& words, StreamRing const& ring, u32 operation, StreamPut const& put,
            bool until_taken) override {
    Current const current(device_);
    finish(cuda::post(stream_, words, ring, operation, put, until_taken), "post from");
  }
  void send(StreamWords const& words, StreamChannel const& to, StreamPut const& put,
            StreamPost const* far) override {
    Current const current(device_);
    finish(cuda::send(stream_, words, to, put, far), "send from");
  }
  void receive(StreamWords const& words, StreamChannel const& from, StreamReceive const& into,
               StreamPost const* far) override {
    Current const current(device_);
    finish(cuda::receive(stream_, words, from, into, far), "receive on");
  }
  void gather(StreamWords const& words, StreamGather const& gather) override {
    Current const current(device_);
    finish(cuda::gather(stream_, words, gather), "gather elements on");
  }
  void scatter(StreamWords const& words, StreamScatter const& scatter) override {
    Current const current(device_);
    finish(cuda::scatter(stream_, words, scatter), "scatter elements on");
  }
  StreamWay way_of(StreamPut const& put) const override { return cuda::way_of(put); }
  StreamExchangeWay way_of(StreamGather const& gather) const override {
    return cuda::way_of(gather);
  }
  StreamExchangeWay way_of(StreamScatter const& scatter) const override {
    return cuda::way_of(scatter);
  }

 private:
  // Makes the text only if it is needed: it takes as long as the call.
  void finish(cudaError_t status, char const* what) const {
    if (status != cudaSuccess) check(status, fmt::format("{} a stream of cuda:{}", what, device_));
  }
  int device_;
  cudaStream_t stream_ = nullptr;
  bool owned_;
};

}  // namespace

std::unique_ptr<Stream> make_stream(int device) {
  return std::make_unique<CudaStream>(device, false);
}
std::unique_ptr<Stream> make_urgent_stream(int device) {
  return std::make_unique<CudaStream>(device, true);
}
std::unique_ptr<Stream> adopt_stream(int device, cudaStream_t adopted) {
  int owner = device;
  Current const current(device);
#if CUDART_VERSION >= 12080
  if (adopted) check(cudaStreamGetDevice(adopted, &owner), "adopt a stream");
#endif
  if (owner != device)
    throw Error(Kind::bad_argument, fmt::format("adopt a stream on cuda:{}", device),
                fmt::format("it is a stream of cuda:{}", owner), "name the stream's own device");
  return std::make_unique<CudaStream>(device, adopted);
}

}  // namespace meshpost::cuda
