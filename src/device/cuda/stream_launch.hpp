#pragma once
// For the kernels of streams' operations. Compiled as CUDA.
#include <atomic>

#include "meshpost/device/block.hpp"
#include "meshpost/device/stream_operations.hpp"

namespace meshpost::cuda {

// Blocks of a grid that may be resident while it waits for the work in front of it.
inline constexpr u32 most_early_blocks = 8;

// A waiting kernel looks at memory of the host seldom, because that is far away.
inline constexpr u32 looks_before_host = 128;  // about 0.1 ms

/// True if begin_behind_others() waits, on all GPUs of this process.
extern std::atomic<bool> waits_for_others;

/// Launched by run_behind(): the grid may be resident before the work in front of it is over. From
/// here on that has ended, and all its stores are seen. The next one may become resident now.
__device__ inline void begin_behind_others() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline bool has_ended(StreamWords const& words) {
  return memory::load_relaxed(words.ended) != 0;
}

/// By one thread: true if this block is the last one to call it, which then sees what the others
/// have stored.
__device__ inline bool is_last_block(StreamWords const& words) {
  if (gridDim.x == 1) return true;
  memory::fence(Order::device);
  if (memory::fetch_add_device(words.copied, 1) + 1 != gridDim.x) return false;
  memory::store_relaxed(words.copied, 0);
  return true;
}

/// By one thread: returns once the host has taken so many messages that `number` is less than
/// `beyond` more. False: the stream was poisoned.
__device__ inline bool await_taken(StreamWords const& words, StreamRing const& ring, u32 number,
                                   u32 beyond) {
  for (u32 looks = 1; static_cast<i32>(number - memory::load_acquire(ring.taken) - beyond) >= 0;
       ++looks)
    if (looks % looks_before_host == 0 && memory::load_acquire(&words.note->poisoned) != 0) {
      memory::store_relaxed(words.ended, 1);
      return false;
    }
  return true;
}

/// By one thread, behind the stores of the message's bytes. The ring's order:
/// device/detail/ring.hpp.
__device__ inline void publish(StreamRing const& ring, u32 number, StreamMessage const& message) {
  StreamMessage& slot = ring.messages[number % StreamRing::slots];
  slot.operation = message.operation;
  slot.offset = message.offset, slot.bytes = message.bytes, slot.whole = message.whole;
  memory::store(&slot.flag, number + 1, Order::system);
}

/// True if a kernel of so many blocks may be launched early.
inline bool starts_early(u32 blocks) { return blocks <= most_early_blocks && waits_for_others; }

// A small grid may become resident while the work in front of it ends, which saves the time to
// launch it. A large one must not: it could keep a cooperative launch off the GPU, that this work
// waits for.
template <class... Parameters, class... Arguments>
cudaError_t run_behind(void (*kernel)(Parameters...), u32 blocks, u32 threads, cudaStream_t stream,
                       Arguments const&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = starts_early(blocks) ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

}  // namespace meshpost::cuda
