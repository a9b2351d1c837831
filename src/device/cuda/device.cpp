#include "meshpost/device/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <set>

#include "device/backends.hpp"
#include "device/cuda/address_space.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/clock.hpp"
#include "device/cuda/cooperative_launch.hpp"
#include "device/cuda/ipc_memory.hpp"
#include "device/cuda/memory.hpp"
#include "device/cuda/mps.hpp"
#include "device/cuda/stream.hpp"
#include "device/cuda/stream_kernels.hpp"

namespace meshpost {
namespace {

using cuda::check;
using cuda::Current;

void free_pinned(void* memory) {
  Current const any;
  cudaFreeHost(memory);
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(u32 index) : index_(index) {
    Current const current(number());
    check(cudaFree(nullptr), fmt::format("start {}", name()));
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, number()), fmt::format("ask about {}", name()));
    if (!properties.cooperativeLaunch)
      throw Error(Kind::bad_environment, fmt::format("open {}", name()),
                  "it has no cooperative launch", "use a GPU of compute capability 7.0 or higher");
    check(cuda::load_stream_kernels(), fmt::format("load the library's kernels on {}", name()));
    transfers_ = cuda::make_stream(number());
    void* pinned = nullptr;
    check(cudaHostAlloc(&pinned, staging_bytes, cudaHostAllocPortable),
          fmt::format("allocate pinned memory for {}", name()));
    staging_.reset(static_cast<char*>(pinned));
    sees_writes_at_once_ = cuda::attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
                                           index) >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
    info_ = {properties.name,
             Bytes{properties.totalGlobalMem},
             static_cast<u32>(properties.multiProcessorCount),
             static_cast<u32>(properties.multiProcessorCount),
             256,
             static_cast<u32>(properties.maxThreadsPerBlock),
             bus(),
             uuid(properties),
             properties.ECCEnabled != 0};
  }
  std::string_view kind() const override { return "cuda"; }
  u32 index() const override { return index_; }
  DeviceInfo const& info() const override { return info_; }

  Allocation allocate(Bytes size, MemoryKind kind) override {
    Current const current(number());
    auto const what = fmt::format("allocate {} bytes on {}", size.value, name());
    void* data = nullptr;
    switch (kind) {
      case MemoryKind::device:
        check(cudaMalloc(&data, size), what);
        return known(data, size, kind, [](void* memory) {
          Current const any;
          cudaFree(memory);
        });
      case MemoryKind::pinned:
        check(cudaHostAlloc(&data, size, cudaHostAllocPortable | cudaHostAllocMapped), what);
        return known(data, size, kind, free_pinned);
      case MemoryKind::pageable: break;
    }
    data = ::operator new(size, std::nothrow);
    if (!data) throw Error(Kind::out_of_memory, what, "the host has no more memory", "use less");
    return {data, size, [](void* memory) { ::operator delete(memory); }};
  }
  Bytes free_memory() override {
    Current const current(number());
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), fmt::format("ask for the free memory of {}", name()));
    return Bytes{free};
  }
  std::unique_ptr<Stream> make_stream() override { return cuda::make_stream(number()); }
  std::unique_ptr<Stream> make_urgent_stream() override {
    return cuda::make_urgent_stream(number());
  }
  std::unique_ptr<Stream> adopt_stream(void* native) override {
    return cuda::adopt_stream(number(), static_cast<cudaStream_t>(native));
  }
  PointerInfo locate(void const* pointer) override {
    Current const current(number());
    cudaPointerAttributes found{};
    if (!pointer || cudaPointerGetAttributes(&found, pointer) != cudaSuccess) {
      cudaGetLastError();
      return {MemoryKind::pageable, false, ~u64{0}};
    }
    if (found.type == cudaMemoryTypeHost) return {MemoryKind::pinned, true, ~u64{0}};
    if (found.type == cudaMemoryTypeUnregistered) return {MemoryKind::pageable, false, ~u64{0}};
    CUdeviceptr base = 0;
    size_t size = 0;
    u64 extent = ~u64{0};
    auto const address = reinterpret_cast<CUdeviceptr>(pointer);
    if (cuda::driver().address_range(&base, &size, address) == CUDA_SUCCESS)
      extent = base + size - address;
    bool const here = found.type == cudaMemoryTypeManaged || found.device == number();
    return {MemoryKind::device, here, extent};
  }
  void do_read(void* host, void const* device, Bytes size) override {
    std::scoped_lock const lock(mutex_);
    in_pieces(host, size, [&](char* pinned, u64 at, Bytes bytes) {
      transfers_->copy(pinned, static_cast<char const*>(device) + at, bytes);
      transfers_->synchronize();
      if (pinned == staging_.get()) std::memcpy(static_cast<char*>(host) + at, pinned, bytes);
    });
  }
  void do_write(void* device, void const* host, Bytes size) override {
    std::scoped_lock const lock(mutex_);
    in_pieces(const_cast<void*>(host), size, [&](char* pinned, u64 at, Bytes bytes) {
      if (pinned == staging_.get()) std::memcpy(pinned, static_cast<char const*>(host) + at, bytes);
      transfers_->copy(static_cast<char*>(device) + at, pinned, bytes);
      transfers_->synchronize();
    });
  }
  void do_fill(void* target, u8 value, Bytes size) override {
    std::scoped_lock const lock(mutex_);
    transfers_->fill(target, value, size);
    transfers_->synchronize();
  }
  void raise(u32* counter, u32 value, u32* origin_word, u32 origin) override {
    std::scoped_lock const lock(mutex_);
    {
      Current const current(number());
      check(cuda::raise(static_cast<cudaStream_t>(transfers_->native()), counter, value,
                        origin_word, origin),
            fmt::format("raise a counter of {}", name()));
    }
    transfers_->synchronize();
  }
  void see_writes() override {
    if (sees_writes_at_once_) return;
    Current const current(number());
    check(cuda::driver().flush_writes(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                      CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
          fmt::format("flush what network cards have written to {}", name()));
  }

 private:
  // Small copies pass through pinned memory. While a thread of the program is inside a copy to
  // other memory of the host, behind a wait of its stream, the driver lets no such copy of another
  // thread begin (seen on an H100), and that stream may wait for what the library copies here.
  template <class Copy>
  void in_pieces(void* host, u64 size, Copy&& copy) {
    if (size > most_staged) return copy(static_cast<char*>(host), 0, Bytes{size});
    for (u64 at = 0; at < size; at += staging_bytes)
      copy(staging_.get(), at, Bytes{std::min(size - at, staging_bytes)});
  }

  Allocation known(void* data, Bytes size, MemoryKind kind, void (*release)(void*)) {
    memory_map().add({static_cast<char*>(data), size, kind, this, true, 0});
    return {data, size, [release](void* memory) {
              memory_map().retire(memory);
              release(memory);
            }};
  }
  int number() const { return static_cast<int>(index_); }
  std::string bus() const {
    std::array<char, 32> text{};
    check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), number()),
          fmt::format("ask for the PCI address of {}", name()));
    std::string address = text.data();
    std::ranges::transform(address, address.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return address;
  }
  static std::string uuid(cudaDeviceProp const& properties) {
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i)
      text += fmt::format("{}{:02x}", i % 2 == 0 && (i == 0 || (i >= 4 && i <= 10)) ? "-" : "",
                          static_cast<unsigned char>(properties.uuid.bytes[i]));
    return text;
  }
  u32 index_;
  DeviceInfo info_;
  bool sees_writes_at_once_ = false;
  static constexpr u64 staging_bytes = u64{256} << 10, most_staged = u64{1} << 20;
  struct FreePinned {
    void operator()(char* memory) const { free_pinned(memory); }
  };
  std::mutex mutex_;  // of the next two
  std::unique_ptr<char, FreePinned> staging_;
  std::unique_ptr<Stream> transfers_;  // non-blocking: works while a kernel runs
};

class CudaBackend : public Backend {
 public:
  std::string_view kind() const override { return "cuda"; }
  DeviceTraits traits() const override { return {.extra_polls = ExtraPolls::by_warp}; }
  bool preferred() const override { return true; }
  u32 count() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess) return static_cast<u32>(devices);
    cudaGetLastError();
    return 0;
  }
  std::string why_none() override {
    int devices = 0;
    auto const status = cudaGetDeviceCount(&devices);
    cudaGetLastError();
    return status == cudaSuccess ? "the driver reports none" : cudaGetErrorString(status);
  }
  std::shared_ptr<Device> open(u32 index) override {
    std::scoped_lock const lock(mutex_);
    auto& device = devices_[index];
    if (!device) device = std::make_shared<CudaDevice>(index);
    return device;
  }
  std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices) override {
    return cuda::reserve(devices);
  }
  bool queues_launches() const override { return true; }
  std::unique_ptr<LaunchGraph> make_graph(std::vector<LaunchSpec> const& steps) override {
    return cuda::make_graph(steps);
  }
  bool reaches(Device& from, Device& to) override {
    if (from.index() == to.index()) return true;
    int peers = 0;
    check(cudaDeviceCanAccessPeer(&peers, static_cast<int>(from.index()),
                                  static_cast<int>(to.index())),
          "ask which GPUs are peers");
    return peers != 0;
  }
  std::unique_ptr<LaunchResources> launch_resources() override { return cuda::launch_resources(); }
  void load_entries(Device& device) override {
    std::scoped_lock const lock(mutex_);
    auto& known = loaded_[device.index()];
    auto const entries = noted_gpu_entries(known);
    known += entries.size();
    Current const current(static_cast<int>(device.index()));
    cudaFuncAttributes unused{};
    for (auto const* const entry : entries)
      // One that this GPU can't run says so when it is launched.
      if (cudaFuncGetAttributes(&unused, entry) != cudaSuccess) cudaGetLastError();
  }
  void fit(LaunchSpec const& spec) override { cuda::fit(spec); }
  std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const& spec) override {
    return cuda::launch(spec);
  }

  void connect(std::vector<std::shared_ptr<Device>> const& given) override {
    auto const devices = physical_devices(given);
    std::scoped_lock const lock(mutex_);
    for (auto const& from : devices)
      for (auto const& to : devices) {
        if (from == to || connected_.contains({from->index(), to->index()})) continue;
        Current const current(static_cast<int>(from->index()));
        auto const status = cudaDeviceEnablePeerAccess(static_cast<int>(to->index()), 0);
        cudaGetLastError();
        if (status != cudaErrorPeerAccessAlreadyEnabled)
          check(status, fmt::format("open {}'s memory to {}", to->name(), from->name()));
        connected_.insert({from->index(), to->index()});
      }
  }
  std::optional<MemoryRange> identify(void const* pointer) override {
    auto found = cuda::identify(pointer);
    if (found) found->range.device = open(found->device).get();
    return found ? std::optional(found->range) : std::nullopt;
  }
  u64 memory_id(void const* pointer) override { return cuda::memory_id(pointer); }
  SharedMemory share_memory(void const* pointer) override { return cuda::share_memory(pointer); }
  void* adopt_memory(Device& device, std::string const& handle, int file, Bytes size) override {
    return cuda::adopt_memory(static_cast<int>(device.index()), handle, file, size);
  }
  void drop_memory(void* adopted) override { cuda::drop_memory(adopted); }
  i64 clock_offset(Device& device) override {
    return cuda::clock_offset(static_cast<int>(device.index()));
  }
  bool runs_processes_at_once(Device& device) override {
    return cuda::mps_serves(static_cast<int>(device.index()));
  }

 private:
  std::mutex mutex_;
  std::map<u32, std::shared_ptr<Device>> devices_;
  std::set<std::pair<u32, u32>> connected_;
  std::map<u32, std::size_t> loaded_;  // by device: noted entries
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace meshpost
