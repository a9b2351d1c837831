#include "compat/mp/buffer.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "meshpost/device/backend.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {
namespace {

// Bytes of GPUs pass through pinned memory. While a thread of the program is inside a copy to other
// memory of the host, behind a wait of its stream, the driver lets no other such copy begin, and
// that wait may need these bytes. (Copies to pinned memory go on: seen on an H100.)
class Staging {
 public:
  explicit Staging(Device& gpu) : memory_(gpu.allocate(Bytes{size}, MemoryKind::pinned)) {}

  template <class Piece>
  void in_pieces(u64 bytes, Piece&& piece) {
    std::scoped_lock const lock(mutex_);
    for (u64 done = 0; done < bytes;) {
      u64 const count = std::min(bytes - done, size);
      piece(memory_.as<char>(), done, count);
      done += count;
    }
  }

 private:
  static constexpr u64 size = u64{256} << 10;
  std::mutex mutex_;
  Allocation memory_;
};

Staging& staging(Device& gpu) {
  static auto* const one = new Staging(gpu);  // the GPU may be closed before main ends
  return *one;
}

void read_gpu(Device& gpu, char* host, char const* memory, u64 bytes) {
  staging(gpu).in_pieces(bytes, [&](char* pinned, u64 at, u64 count) {
    gpu.read(pinned, memory + at, Bytes{count});
    std::memcpy(host + at, pinned, count);
  });
}

void write_gpu(Device& gpu, char* memory, char const* host, u64 bytes) {
  staging(gpu).in_pieces(bytes, [&](char* pinned, u64 at, u64 count) {
    std::memcpy(pinned, host + at, count);
    gpu.write(memory + at, pinned, Bytes{count});
  });
}

}  // namespace

void make_staging(Device& gpu) { staging(gpu); }

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
    if (gpu) read_gpu(*gpu, to, memory, count);
    else std::memcpy(to, memory, count);
  });
}

void Buffer::write(u64 offset, void const* host, u64 bytes) const {
  each(offset, bytes, [&](char* to, Device* gpu, u64 at, u64 count) {
    char const* const from = static_cast<char const*>(host) + at;
    if (gpu) return write_gpu(*gpu, to, from, count);
    if (count != sizeof(u32) || reinterpret_cast<u64>(to) % sizeof(u32) != 0)
      return void(std::memcpy(to, from, count));
    u32 word = 0;  // somebody may poll it
    std::memcpy(&word, from, sizeof word);
    memory::store(reinterpret_cast<u32*>(to), word, Order::system);
  });
}

}  // namespace meshpost::compat::mp
