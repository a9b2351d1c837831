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

// A look at a count of hosts takes as long as several of devices. Where no device has raised the
// counter yet, hosts most likely do, as those of senders on other nodes.
inline constexpr u32 looks_before_count_of_host = 32;  // the first after some 8 us
inline constexpr u32 looks_if_none_of_device = 4;

/// By all threads of a warp: returns when the counts of all that have one (`any`) have come.
/// `tells`: the host is told about a long wait. Only one warp of a kernel may do this. False: the
/// stream was poisoned.
__device__ inline bool await_by_warp(StreamWords const& words, AwaitedCounter const& one, bool any,
                                     bool tells) {
  u32 const mine = threadIdx.x % 32;
  u32 const consumed = any ? memory::load_relaxed(one.consumed) : 0;
  u32 by_host = 0;  // what was seen of it
  u32 const rest = any && memory::load_relaxed(one.raised) == 0 ? looks_if_none_of_device
                                                                : looks_before_count_of_host;
  for (u32 looks = 1;; ++looks) {
    if (any && one.raised_by_host && looks % rest == rest / 2)
      by_host = memory::load_acquire(one.raised_by_host);
    u32 const come = any ? memory::load_acquire(one.raised) + by_host - consumed : 0;
    bool const has_come = !any || static_cast<i32>(come - one.count) >= 0;
    u32 const missing = __ballot_sync(~0u, !has_come);
    if (missing == 0) {
      __syncwarp();
      if (tells && looks > looks_before_host && mine == 0)
        memory::store_relaxed(&words.note->waiting, 0);
      return true;
    }
    if (looks % looks_before_host != 0) continue;
    u32 all = come;
    for (u32 distance = 16; distance != 0; distance /= 2)
      all += __shfl_xor_sync(~0u, all, static_cast<int>(distance));
    bool poisoned = false;
    if (mine == static_cast<u32>(__ffs(static_cast<int>(missing))) - 1) {
      poisoned = memory::load_acquire(&words.note->poisoned) != 0;
      if (tells) {
        memory::store_relaxed(&words.note->operation, one.operation);
        memory::store_relaxed(&words.note->window, one.window);
        memory::store_relaxed(&words.note->tag, one.tag);
        memory::store_relaxed(&words.note->peer, one.peer);
        memory::store_relaxed(&words.note->count, one.count);
        memory::store_relaxed(&words.note->come, come);
        memory::store_relaxed(&words.note->consumed, consumed);
        memory::store_relaxed(&words.note->all, all);
      }
      if (poisoned) memory::store_relaxed(words.ended, 1);
      if (tells)
        memory::store(&words.note->waiting, u32{poisoned ? StreamNote::ended : StreamNote::yes},
                      Order::system);
    }
    if (__any_sync(~0u, poisoned)) return false;
  }
}

/// By one thread, when nobody looks any more.
__device__ inline void consume(AwaitedCounter const& one) {
  memory::store_relaxed(one.consumed, memory::load_relaxed(one.consumed) + one.count);
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
  slot.operation = message.operation, slot.skipped = message.skipped;
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
