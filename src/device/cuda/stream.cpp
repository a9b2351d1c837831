#include "device/cuda/stream.hpp"

#include <fmt/format.h>

#include "device/cuda/check.hpp"

namespace meshpost::cuda {
namespace {

class CudaEvent : public Event {
 public:
  CudaEvent(int device, cudaStream_t stream) {
    Current const current(device);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create an event");
    check(cudaEventRecord(event_, stream), "record an event");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(CudaEvent const&) = delete;
  CudaEvent& operator=(CudaEvent const&) = delete;

  bool done() override {
    auto const status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    check(status, "ask whether a stream has got to an event");
    return true;
  }
  void wait() override { check(cudaEventSynchronize(event_), "wait for an event"); }
  cudaEvent_t native() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaStream : public Stream {
 public:
  CudaStream(int device, cudaStream_t adopted) : device_(device), stream_(adopted), owned_(!adopted) {
    Current const current(device_);
    if (owned_) check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~CudaStream() override {
    if (owned_) cudaStreamDestroy(stream_);
  }
  CudaStream(CudaStream const&) = delete;
  CudaStream& operator=(CudaStream const&) = delete;

  void copy(void* target, void const* source, Bytes size) override {
    Current const current(device_);
    check(cudaMemcpyAsync(target, source, size, cudaMemcpyDefault, stream_),
          fmt::format("copy {} bytes on cuda:{}", size.value, device_));
  }
  void fill(void* target, u8 value, Bytes size) override {
    Current const current(device_);
    check(cudaMemsetAsync(target, value, size, stream_), fmt::format("fill {} bytes on cuda:{}", size.value, device_));
  }
  void call(std::function<void()> work) override {
    Current const current(device_);
    auto* const kept = new std::function<void()>(std::move(work));
    auto const invoke = [](void* data) {
      std::unique_ptr<std::function<void()>> const function(static_cast<std::function<void()>*>(data));
      (*function)();
    };
    check(cudaLaunchHostFunc(stream_, invoke, kept), "call a host function in a stream");
  }
  std::shared_ptr<Event> record() override { return std::make_shared<CudaEvent>(device_, stream_); }
  void wait(std::shared_ptr<Event> event) override {
    Current const current(device_);
    if (auto const* const own = dynamic_cast<CudaEvent*>(event.get()))
      check(cudaStreamWaitEvent(stream_, own->native(), 0), "make a stream wait for an event");
    else
      call([event = std::move(event)] { event->wait(); });
  }
  void synchronize() override {
    check(cudaStreamSynchronize(stream_), fmt::format("wait for a stream of cuda:{}", device_));
  }
  void* native() override { return stream_; }

 private:
  int device_;
  cudaStream_t stream_;
  bool owned_;
};

}  // namespace

std::unique_ptr<Stream> make_stream(int device, cudaStream_t adopted) {
  return std::make_unique<CudaStream>(device, adopted);
}

}  // namespace meshpost::cuda
