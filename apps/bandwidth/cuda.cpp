#include <cuda_runtime_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "variants.hpp"

namespace bandwidth {
namespace {

using namespace meshpost;

void check(cudaError_t status, std::string const& operation) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw Error(Kind::device_failed, operation, cudaGetErrorString(status),
              "see the first such error");
}

bool both_on_gpus(Place const& from, Place const& to) {
  return from.kind == "cuda" && to.kind == "cuda";
}

// A stream of a GPU that does not wait for other streams. It lives as long as the copier.
class OwnStream {
 public:
  explicit OwnStream(u32 device) : device_(static_cast<int>(device)) {
    check(cudaSetDevice(device_), "choose a GPU");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(OwnStream const&) = delete;
  OwnStream& operator=(OwnStream const&) = delete;
  cudaStream_t get() const { return stream_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "wait for a copy"); }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

// Switches peer access between two GPUs off while it lives, if it was on.
class NoPeerAccess {
 public:
  NoPeerAccess(u32 one, u32 other) : one_(static_cast<int>(one)), other_(static_cast<int>(other)) {
    there_ = switch_off(one_, other_);
    back_ = switch_off(other_, one_);
  }
  ~NoPeerAccess() {
    if (there_) switch_on(one_, other_);
    if (back_) switch_on(other_, one_);
  }
  NoPeerAccess(NoPeerAccess const&) = delete;
  NoPeerAccess& operator=(NoPeerAccess const&) = delete;

 private:
  static bool switch_off(int from, int to) {
    check(cudaSetDevice(from), "choose a GPU");
    auto const status = cudaDeviceDisablePeerAccess(to);
    cudaGetLastError();
    if (status == cudaErrorPeerAccessNotEnabled) return false;
    check(status, "close a GPU's memory to another");
    return true;
  }
  static void switch_on(int from, int to) {
    if (cudaSetDevice(from) == cudaSuccess) cudaDeviceEnablePeerAccess(to, 0);
    cudaGetLastError();
  }
  int one_, other_;
  bool there_ = false, back_ = false;
};

Variant::Copier driver(Place const& from, Place const& to) {
  bool const gpu = from.kind == "cuda" || to.kind == "cuda";
  auto const device = from.kind == "cuda" ? from.number : to.kind == "cuda" ? to.number : 0;
  if (!gpu)
    return [](void* target, void const* source, Bytes size) {
      check(cudaMemcpy(target, source, size, cudaMemcpyDefault), "cudaMemcpy");
    };
  auto const stream = std::make_shared<OwnStream>(device);
  if (both_on_gpus(from, to) && from != to)
    return [=](void* target, void const* source, Bytes size) {
      check(cudaMemcpyPeerAsync(target, static_cast<int>(to.number), source,
                                static_cast<int>(from.number), size, stream->get()),
            "cudaMemcpyPeerAsync");
      stream->synchronize();
    };
  return [=](void* target, void const* source, Bytes size) {
    check(cudaMemcpyAsync(target, source, size, cudaMemcpyDefault, stream->get()),
          "cudaMemcpyAsync");
    stream->synchronize();
  };
}

// `gpus`: those of this run; others are not started. Pairs of other places are controls.
Variant::Copier driver_without_peers(std::vector<u32> const& gpus, Place const& from,
                                     Place const& to) {
  auto const off = std::make_shared<std::vector<std::unique_ptr<NoPeerAccess>>>();
  for (auto const& one : gpus)
    for (auto const& other : gpus)
      if (one < other && (Place{"cuda", one} == from || Place{"cuda", one} == to ||
                          Place{"cuda", other} == from || Place{"cuda", other} == to))
        off->push_back(std::make_unique<NoPeerAccess>(one, other));
  return [off, copy = driver(from, to)](void* target, void const* source, Bytes size) {
    copy(target, source, size);
  };
}

}  // namespace

std::vector<Variant> cuda_variants(std::vector<std::shared_ptr<Device>> const& devices) {
  std::vector<u32> gpus;
  for (auto const& device : devices)
    if (device->kind() == "cuda") gpus.push_back(device->index());
  return {{"driver", "cudaMemcpyAsync or cudaMemcpyPeerAsync, peer access on", driver},
          {"no_peers", "the same, peer access off", [gpus](Place const& from, Place const& to) {
             return driver_without_peers(gpus, from, to);
           }}};
}

}  // namespace bandwidth
