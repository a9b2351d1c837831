// Compiled as CUDA.
//
// clang-format off
// Why a stream that has consumed a count sees the bytes that its sender stored before:
//  1. Each thread of a put stores its share. __syncthreads() orders these stores before the fence of
//     the block's first thread. With several blocks, that thread then adds to `copied`; the block
//     that adds last has acquired the others' shares (its add is acquire and release), and fences
//     at system scope behind that. Fences are cumulative.
//  2. Stores of the stream's earlier work happen before the kernel begins.
//  3. The counter is raised by a relaxed add at system scope behind the fence; a warp of the target's
//     stream reads it, or a later value, with acquire at system scope. All adds are
//     read-modify-writes, so later values continue the release sequence. (The same as for ranks: see
//     rma/detail/via/direct/write.hpp.)
//  4. Later work of that stream begins when the kernel that read it has ended.
// `consumed` has one writer, the stream itself, whose kernels run one behind the other.
// clang-format on
#include "device/cuda/stream_kernels.hpp"

#include <algorithm>

#include "device/cuda/stream_launch.hpp"

namespace meshpost::cuda {

std::atomic<bool> waits_for_others = true;

namespace {

constexpr u32 put_threads = 256;
constexpr u64 bytes_a_block = u64{8} << 10;
constexpr u64 most_blocks = 64;
// Copy engines take longer to begin, and are a tenth faster then.
constexpr u64 longest_by_kernel = u64{32} << 20;
__device__ void raise_counter(StreamPut const& put) {
  if (!put.counter) return;
  if (put.origin_word) memory::store_relaxed(put.origin_word, put.origin);
  memory::add(put.counter, 1, Order::none);
}

__global__ void put_kernel(StreamWords const words, StreamPut const put) {
  begin_behind_others();
  u32 const thread = blockIdx.x * blockDim.x + threadIdx.x, threads = blockDim.x * gridDim.x;
  u64 const low = reinterpret_cast<u64>(put.target) | reinterpret_cast<u64>(put.source) | put.bytes;
  if (low % 4 == 0 && put.bytes <= u64{4} * threads && !put.units) {
    // Both loads are in flight at once.
    bool const any = thread < put.bytes / 4;
    u32 const word = any ? static_cast<u32 const*>(put.source)[thread] : 0;
    if (has_ended(words)) return;
    if (any) static_cast<u32*>(put.target)[thread] = word;
  } else {
    if (has_ended(words)) return;
    memory::copy(put.target, put.source, put.size(), thread, threads);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (!is_last_block(words)) return;
  memory::fence(Order::system);
  raise_counter(put);
}

__global__ void raise_kernel(StreamWords const words, StreamPut const put) {
  begin_behind_others();
  if (has_ended(words)) return;
  memory::fence(Order::system);
  raise_counter(put);
}

__global__ void add_kernel(u32* counter, u32 value, u32* origin_word, u32 origin) {
  if (origin_word) memory::store_relaxed(origin_word, origin);
  memory::add(counter, value, Order::system);
}

template <u32 most>
struct Awaited {
  AwaitedCounter counters[most];
  u32 count;
};

// One warp; each thread has a counter.
template <u32 most>
__global__ void await_kernel(StreamWords const words, Awaited<most> const awaited) {
  begin_behind_others();
  if (has_ended(words)) return;
  u32 const mine = threadIdx.x;
  bool const any = mine < awaited.count;
  AwaitedCounter const one = awaited.counters[any ? mine : 0];
  if (await_by_warp(words, one, any, true) && any) consume(one);
}

// One block. The ring's order: device/detail/ring.hpp.
__global__ void post_kernel(StreamWords const words, StreamRing const ring, u32 operation,
                            StreamPut const put, bool until_taken) {
  begin_behind_others();
  if (has_ended(words)) return;
  u64 const bytes = put.size();
  u32 number = memory::load_relaxed(ring.posted);
  u64 offset = 0;
  do {
    u64 const left = bytes - offset;
    u64 const size = left < StreamMessage::most_bytes ? left : StreamMessage::most_bytes;
    bool const poisoned = threadIdx.x == 0 && !await_taken(words, ring, number, StreamRing::slots);
    if (__syncthreads_or(poisoned)) break;
    memory::copy(ring.bytes_of(number), static_cast<char const*>(put.source) + offset, size,
                 threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
      publish(ring, number,
              {.operation = operation,
               .skipped = put.skipped(),
               .offset = offset,
               .bytes = size,
               .whole = bytes});
    offset += size;
    ++number;
  } while (offset < bytes);
  if (threadIdx.x != 0) return;
  memory::store_relaxed(ring.posted, number);
  if (until_taken) await_taken(words, ring, number, 1);
}

template <u32 most>
cudaError_t launch_await(cudaStream_t stream, StreamWords const& words,
                         std::span<AwaitedCounter const> counters) {
  Awaited<most> awaited{};
  std::ranges::copy(counters, awaited.counters);
  awaited.count = static_cast<u32>(counters.size());
  return run_behind(&await_kernel<most>, 1, 32, stream, words, awaited);
}

}  // namespace

cudaError_t load_stream_kernels() {
  cudaFuncAttributes found{};
  for (auto const* const kernel :
       {reinterpret_cast<void const*>(&put_kernel), reinterpret_cast<void const*>(&raise_kernel),
        reinterpret_cast<void const*>(&add_kernel), reinterpret_cast<void const*>(&post_kernel),
        reinterpret_cast<void const*>(&await_kernel<1>),
        reinterpret_cast<void const*>(&await_kernel<AwaitedCounter::most>)})
    if (auto const status = cudaFuncGetAttributes(&found, kernel); status != cudaSuccess)
      return status;
  if (auto const status = load_channel_kernels(); status != cudaSuccess) return status;
  if (auto const status = load_exchange_kernels(); status != cudaSuccess) return status;
  // Code for older GPUs has no griddepcontrol, also if it was compiled anew for this one.
  if (found.ptxVersion < 90 || found.binaryVersion < 90) waits_for_others = false;
  return cudaSuccess;
}

StreamWay way_of(StreamPut const& put) {
  if (put.bytes > longest_by_kernel && !put.units) return {StreamWay::copy_engine, 1, true};
  auto const blocks = static_cast<u32>(std::clamp<u64>(put.bytes / bytes_a_block, 1, most_blocks));
  return {StreamWay::kernel, blocks, starts_early(blocks)};
}

cudaError_t put(cudaStream_t stream, StreamWords const& words, StreamPut const& put) {
  auto const way = way_of(put);
  if (way.by == StreamWay::copy_engine) {
    auto const status =
        cudaMemcpyAsync(put.target, put.source, put.bytes, cudaMemcpyDefault, stream);
    if (status != cudaSuccess || !put.counter) return status;
  } else if (put.bytes != 0) {
    return run_behind(&put_kernel, way.blocks, put_threads, stream, words, put);
  }
  return run_behind(&raise_kernel, 1, 1, stream, words, put);
}

cudaError_t await(cudaStream_t stream, StreamWords const& words,
                  std::span<AwaitedCounter const> counters) {
  return counters.size() == 1 ? launch_await<1>(stream, words, counters)
                              : launch_await<AwaitedCounter::most>(stream, words, counters);
}

cudaError_t post(cudaStream_t stream, StreamWords const& words, StreamRing const& ring,
                 u32 operation, StreamPut const& put, bool until_taken) {
  return run_behind(&post_kernel, 1, 512, stream, words, ring, operation, put, until_taken);
}

cudaError_t raise(cudaStream_t stream, u32* counter, u32 value, u32* origin_word, u32 origin) {
  add_kernel<<<1, 1, 0, stream>>>(counter, value, origin_word, origin);
  return cudaGetLastError();
}

}  // namespace meshpost::cuda
