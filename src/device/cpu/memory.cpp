#include "device/cpu/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <mutex>

#include "device/cpu/address_space.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/device/memory_map.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace meshpost::cpu {
namespace {

// Tells the address sanitizer, if there is one, if memory may be touched.
void may_touch(bool yes, [[maybe_unused]] void* memory, [[maybe_unused]] u64 size) {
#if defined(__SANITIZE_ADDRESS__)
  if (yes) ASAN_UNPOISON_MEMORY_REGION(memory, size);
  else ASAN_POISON_MEMORY_REGION(memory, size);
#else
  static_cast<void>(yes);
#endif
}

constexpr u64 alignment = 256;

// Freed memory, the oldest first. Its pages are given back at once, its addresses when it leaves
// the quarantine.
class Quarantine {
 public:
  void take(void* memory, u64 size) {
    memory_map().retire(memory);
    give_pages_back(memory, size);
    may_touch(false, memory, size);
    std::scoped_lock const lock(mutex_);
    freed_.push_back({memory, size});
    bytes_ += size;
    while (freed_.size() > most_blocks || (bytes_ > most_bytes && freed_.size() > 1)) {
      auto const [oldest, its_size] = freed_.front();
      freed_.pop_front();
      bytes_ -= its_size;
      memory_map().forget(oldest, its_size);
      may_touch(true, oldest, its_size);
      std::free(oldest);
    }
  }

 private:
  static void give_pages_back(void* memory, u64 size) {
    static u64 const page = static_cast<u64>(sysconf(_SC_PAGESIZE));
    auto const begin = (reinterpret_cast<u64>(memory) + page - 1) / page * page;
    auto const end = (reinterpret_cast<u64>(memory) + size) / page * page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

  static constexpr u64 most_blocks = 256, most_bytes = u64{16} << 30;  // of addresses
  std::mutex mutex_;
  struct Block {
    void* memory;
    u64 size;
  };
  std::deque<Block> freed_;
  u64 bytes_ = 0;
};

Quarantine& quarantine() {
  static auto* const one = new Quarantine;  // memory may be freed after main
  return *one;
}

}  // namespace

Allocation allocate(Device& device, Bytes size, MemoryKind kind) {
  u64 const rounded = size == 0 ? alignment : (size.value + alignment - 1) / alignment * alignment;
  u64 const available = available_memory();
  void* const data = size <= available ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (!data)
    throw Error(Kind::out_of_memory, fmt::format("allocate on {}", device.name()),
                fmt::format("{} bytes were asked for, {} are free", size.value, available),
                "use less");
  memory_map().add({static_cast<char const*>(data), size, kind, &device, true, 0});
  return {data, size, [rounded](void* memory) { quarantine().take(memory, rounded); }};
}

}  // namespace meshpost::cpu
