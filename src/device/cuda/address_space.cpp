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
  // Network cards may then read and write it. Some drivers refuse the flag if the cards can't.
  wanted.allocFlags.gpuDirectRDMACapable =
      attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device) != 0 ? 1 : 0;
  return wanted;
}

// Drivers say little about why processes can't share memory. The remedy lists what they need.
Error not_shared(Error const& error) {
  return {
      Kind::bad_environment, error.operation(), error.cause(),
      "use GPUs with peer access (nvidia-smi topo -p2p r shows which have it); let each process "
      "see the node's GPUs (CUDA_VISIBLE_DEVICES; containers: --gpus all), and start "
      "containers with --ipc=host"};
}

class MappedMemory : public AddressSpace {
 public:
  explicit MappedMemory(SpaceDevices const& all)
      : devices_(all.own), numbers_(all.numbers), count_(all.count) {
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
    check(driver().address_reserve(&base_, stride_ * count_, granularity_, 0, 0),
          "reserve addresses");
  }
  ~MappedMemory() override {
    memory_map().forget(base(), stride_ * count_);
    for (auto const& piece : pieces_) {
      driver().unmap(piece.address, piece.size);
      driver().release(piece.handle);
    }
    driver().address_free(base_, stride_ * count_);
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
    for (u64 d = 0; d < devices_.size(); ++d) {
      auto const what = fmt::format("{} bytes on {}", size.value, devices_[d]->name());
      Current const current(static_cast<int>(devices_[d]->index()));
      auto const wanted = properties(devices_[d]->index());
      Piece piece{address(numbers_[d], offset), size, 0};
      check(driver().create(&piece.handle, size, &wanted, 0), what);
      map(piece, what);
      check(cudaMemset(reinterpret_cast<void*>(piece.address), 0, size), what);
      check(cudaStreamSynchronize(nullptr), what);
    }
    for (u64 d = 0; d < devices_.size(); ++d)
      memory_map().add({base() + numbers_[d] * stride_ + offset, size, MemoryKind::device,
                        physical(devices_[d]).get()},
                       MemoryMap::Neighbours::join);
  }

  void shrink(Bytes offset, Bytes size) noexcept override {
    std::erase_if(pieces_, [&](Piece const& piece) {
      u64 const at = (piece.address - base_) % stride_;
      if (at < offset || at - offset >= size) return false;
      driver().unmap(piece.address, piece.size);
      driver().release(piece.handle);
      return true;
    });
    for (u64 device = 0; device < count_; ++device)
      memory_map().forget(base() + device * stride_ + offset, size);
  }

  int share(u32 device, Bytes offset, Bytes size) override {
    auto const piece = std::ranges::find(pieces_, address(device, offset), &Piece::address);
    int file = -1;
    try {
      check(
          driver().export_handle(&file, piece->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          fmt::format("share {} bytes with other processes", size.value));
    } catch (Error const& error) {
      throw not_shared(error);
    }
    return file;
  }

  void adopt(u32 device, Bytes offset, Bytes size, int file) override {
    if (devices_.empty()) return;  // no device here could reach it
    auto const what = fmt::format("map {} bytes of another process's GPU", size.value);
    Piece piece{address(device, offset), size, 0};
    // The driver takes the descriptor as a pointer.
    void* const handle = reinterpret_cast<void*>(static_cast<u64>(file));  // NOLINT
    try {
      check(driver().import_handle(&piece.handle, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            what);
      map(piece, what);
    } catch (Error const& error) {
      throw not_shared(error);
    }
  }

 private:
  struct Piece {
    CUdeviceptr address;
    u64 size;
    CUmemGenericAllocationHandle handle;
  };

  CUdeviceptr address(u64 device, u64 offset) const { return base_ + device * stride_ + offset; }

  // Maps it for all own devices, and keeps it.
  void map(Piece const& piece, std::string const& what) {
    if (auto const status = driver().map(piece.address, piece.size, 0, piece.handle, 0);
        status != CUDA_SUCCESS) {
      driver().release(piece.handle);
      check(status, what);
    }
    pieces_.push_back(piece);
    std::vector<CUmemAccessDesc> access;
    for (auto const& device : physical_devices(devices_))
      access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, {static_cast<int>(device->index())}},
                        CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    check(driver().set_access(piece.address, piece.size, access.data(), access.size()), what);
  }

  std::vector<std::shared_ptr<Device>> devices_;  // own ones
  std::vector<u32> numbers_;                      // theirs in the world
  u32 count_;                                     // devices of the world
  u64 granularity_ = 0, stride_ = 0;
  CUdeviceptr base_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices) {
  return std::make_unique<MappedMemory>(devices);
}

}  // namespace meshpost::cuda
