#include "device/cuda/address_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "device/cuda/check.hpp"
#include "meshpost/device/memory_map.hpp"

namespace meshpost::cuda {
namespace {

CUmemAllocationProp properties(u32 device) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes =
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;  // for other processes of the node
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, {static_cast<int>(device)}};
  return wanted;
}

class MappedMemory : public AddressSpace {
 public:
  explicit MappedMemory(std::vector<std::shared_ptr<Device>> devices)
      : devices_(std::move(devices)) {
    require_peers();
    u64 largest = 0;
    for (auto const& device : devices_) {
      Current const current(static_cast<int>(device->index()));
      largest = std::max(largest, device->info().memory.value);
      size_t unit = 0;
      auto const wanted = properties(device->index());
      check(driver().granularity(&unit, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
            "ask for the page size");
      granularity_ = std::max<u64>(granularity_, unit);
    }
    stride_ = std::bit_ceil(largest);
    check(driver().address_reserve(&base_, stride_ * devices_.size(), granularity_, 0, 0),
          "reserve addresses");
  }
  ~MappedMemory() override {
    memory_map().forget(base(), stride_ * devices_.size());
    for (auto const& piece : pieces_) {
      driver().unmap(piece.address, piece.size);
      driver().release(piece.handle);
    }
    driver().address_free(base_, stride_ * devices_.size());
  }
  MappedMemory(MappedMemory const&) = delete;
  MappedMemory& operator=(MappedMemory const&) = delete;

  char* base() const override { return reinterpret_cast<char*>(base_); }
  Bytes stride() const override { return Bytes{stride_}; }
  Bytes granularity() const override { return Bytes{granularity_}; }

  void extend(Bytes offset, Bytes size) override {
    if (size > stride_ || offset > stride_ - size)
      throw Error(
          Kind::out_of_memory, "memory of the GPUs",
          fmt::format("{} bytes on each device were asked for; the devices have less", size.value),
          "use smaller windows");
    std::vector<CUmemAccessDesc> access;
    for (auto const& device : devices_)
      access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, {static_cast<int>(device->index())}},
                        CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    auto const first_new = pieces_.size();
    try {
      for (u64 d = 0; d < devices_.size(); ++d) {
        auto const what = fmt::format("{} bytes on {}", size.value, devices_[d]->name());
        Current const current(static_cast<int>(devices_[d]->index()));
        auto const wanted = properties(devices_[d]->index());
        Piece piece{base_ + d * stride_ + offset, size, 0};
        check(driver().create(&piece.handle, size, &wanted, 0), what);
        if (auto const status = driver().map(piece.address, size, 0, piece.handle, 0);
            status != CUDA_SUCCESS) {
          driver().release(piece.handle);
          check(status, what);
        }
        pieces_.push_back(piece);
        check(driver().set_access(piece.address, size, access.data(), access.size()), what);
        check(cudaMemset(reinterpret_cast<void*>(piece.address), 0, size), what);
        check(cudaStreamSynchronize(nullptr), what);
      }
    } catch (...) {
      for (; pieces_.size() > first_new; pieces_.pop_back()) {
        driver().unmap(pieces_.back().address, pieces_.back().size);
        driver().release(pieces_.back().handle);
      }
      throw;
    }
    for (u64 d = 0; d < devices_.size(); ++d)
      memory_map().add({base() + d * stride_ + offset, size, MemoryKind::device, devices_[d].get()},
                       MemoryMap::Neighbours::join);
  }

 private:
  struct Piece {
    CUdeviceptr address;
    u64 size;
    CUmemGenericAllocationHandle handle;
  };

  void require_peers() const {
    for (auto const& one : devices_)
      for (auto const& other : devices_) {
        int peers = 1;
        if (one != other)
          check(cudaDeviceCanAccessPeer(&peers, static_cast<int>(one->index()),
                                        static_cast<int>(other->index())),
                "ask which GPUs are peers");
        if (!peers)
          throw Error(Kind::bad_environment, "World",
                      fmt::format("{} can't reach {}'s memory", one->name(), other->name()),
                      "choose GPUs joined by NVLink or one PCIe switch (nvidia-smi topo -p2p r "
                      "shows them)");
      }
  }

  std::vector<std::shared_ptr<Device>> devices_;
  u64 granularity_ = 0, stride_ = 0;
  CUdeviceptr base_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<AddressSpace> reserve(std::vector<std::shared_ptr<Device>> const& devices) {
  return std::make_unique<MappedMemory>(devices);
}

}  // namespace meshpost::cuda
