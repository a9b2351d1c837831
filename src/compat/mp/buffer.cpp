#include "compat/mp/buffer.hpp"

#include <algorithm>
#include <cstring>

#include "meshpost/device/backend.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {

Device* gpu_of(void const* memory) {
  auto& kind = default_backend();
  if (!memory || &kind == &host_backend()) return nullptr;
  auto const range = kind.identify(memory);
  return range && range->kind == MemoryKind::device ? range->device : nullptr;
}

void Buffer::add(void* memory, u64 bytes) {
  if (bytes == 0) return;
  blocks_.push_back({static_cast<char*>(memory), bytes, gpu_of(memory)});
  size_ += bytes;
}

// Calls work(memory, gpu, offset from the first byte, bytes) for each block.
template <class Work>
void Buffer::each(u64 offset, u64 bytes, Work&& work) const {
  u64 begin = 0, done = 0;
  for (auto const& block : blocks_) {
    u64 const end = begin + block.bytes, from = std::max(begin, offset),
              to = std::min(end, offset + bytes);
    if (from < to) {
      work(block.memory + (from - begin), block.gpu, done, to - from);
      done += to - from;
    }
    begin = end;
  }
}

void Buffer::read(u64 offset, void* host, u64 bytes) const {
  each(offset, bytes, [&](char* memory, Device* gpu, u64 at, u64 count) {
    char* const to = static_cast<char*>(host) + at;
    if (gpu) gpu->read(to, memory, Bytes{count});
    else std::memcpy(to, memory, count);
  });
}

void Buffer::write(u64 offset, void const* host, u64 bytes) const {
  each(offset, bytes, [&](char* to, Device* gpu, u64 at, u64 count) {
    char const* const from = static_cast<char const*>(host) + at;
    if (gpu) return gpu->write(to, from, Bytes{count});
    if (count != sizeof(u32) || reinterpret_cast<u64>(to) % sizeof(u32) != 0)
      return void(std::memcpy(to, from, count));
    u32 word = 0;  // somebody may poll it
    std::memcpy(&word, from, sizeof word);
    memory::store(reinterpret_cast<u32*>(to), word, Order::system);
  });
}

}  // namespace meshpost::compat::mp
