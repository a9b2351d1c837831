#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <meshpost/copy/copy.hpp>

#include <cstring>
#include <random>

#include "support/bytes.hpp"
#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

// Memory of every kind that the test's devices have, with poison around the copied bytes.

namespace meshpost::test {

inline std::vector<std::shared_ptr<Device>> const& copy_devices() {
  static auto const all = [] {
    auto found = open_devices(devices());
    use_devices_for_copies(found);
    return found;
  }();
  return all;
}

inline u64 new_seed() {
  char const* const given = std::getenv("MESHPOST_TEST_SEED");
  u64 const seed = given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

/// A kind of memory: plain vectors, a device's own, page-locked, or CUDA memory that the library
/// has not allocated (there, a registered vector).
struct Where {
  u32 device = 0;
  MemoryKind kind = MemoryKind::device;
  bool plain = false;  ///< not from the library

  std::string name() const {
    if (plain) return "plain";
    auto const number = std::to_string(device);
    return (kind == MemoryKind::device   ? "device"
            : kind == MemoryKind::pinned ? "pinned"
                                         : "pageable") +
           number;
  }
};

inline std::vector<Where> all_places() {
  std::vector<Where> all{{0, MemoryKind::pageable, true}};
  for (u32 d = 0; d < copy_devices().size(); ++d)
    for (auto const kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::pageable})
      all.push_back({d, kind, false});
  return all;
}

/// Bytes in some memory, read and written by functions of their device.
class Memory {
 public:
  Memory(Where where, u64 size) : where_(where), size_(size) {
    if (where.plain) plain_.resize(size);
    else owned_ = device().allocate(Bytes{size}, where.kind);
  }
  u8* data() { return where_.plain ? plain_.data() : owned_.as<u8>(); }
  u64 size() const { return size_; }
  void fill(u8 value) { put(std::vector<u8>(size_, value)); }
  void put(std::vector<u8> const& bytes) {
    if (where_.kind != MemoryKind::device) std::memcpy(data(), bytes.data(), bytes.size());
    else device().write(data(), bytes.data(), Bytes{bytes.size()});
  }
  std::vector<u8> get() {
    std::vector<u8> bytes(size_);
    if (where_.kind != MemoryKind::device) std::memcpy(bytes.data(), data(), size_);
    else device().read(bytes.data(), data(), Bytes{size_});
    return bytes;
  }

 private:
  Device& device() const { return *copy_devices()[where_.device]; }
  Where where_;
  u64 size_;
  std::vector<u8> plain_;
  Allocation owned_;
};

}  // namespace meshpost::test
