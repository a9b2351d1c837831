// Compiled as CUDA. Exchanges by a plan; the argument for their order is beside StreamGather.
//
// clang-format off
// A block's share in it. __syncthreads() orders the stores (loads) of all threads of the block before
// the first thread's add to `copied`, which is acquire and release. The block that adds last has
// acquired the shares of all blocks, and another __syncthreads() passes that on to its threads. Each
// thread that raises a counter has a fence at system scope before that, which is cumulative.
// Each block waits for itself: its first warp acquires the counters, and a __syncthreads() passes
// that on. Only the last block consumes them, when all blocks have looked.
// clang-format on
#include <algorithm>
#include <utility>

#include "device/cuda/stream_kernels.hpp"
#include "device/cuda/stream_launch.hpp"
#include "meshpost/device/stream_exchange.hpp"

namespace meshpost::cuda {
namespace {

constexpr u32 exchange_threads = 512;
constexpr u64 units_a_block = 1024;
constexpr u64 most_exchange_blocks = 64;

// By all threads of a block. False: the stream has ended, or was poisoned. The block votes, because
// another block may say so at any time.
__device__ bool await_list(StreamWords const& words, StreamList<AwaitedCounter> const& list) {
  bool ended = threadIdx.x == 0 && has_ended(words);
  if (threadIdx.x < 32)
    for (u32 first = 0; first < list.count && !__any_sync(~0u, ended); first += 32) {
      bool const any = first + threadIdx.x < list.count;
      AwaitedCounter const one = list[any ? first + threadIdx.x : first];
      ended = !await_by_warp(words, one, any, blockIdx.x == 0);
    }
  return __syncthreads_or(ended) == 0;
}

__device__ void consume_list(StreamList<AwaitedCounter> const& list) {
  for (u32 i = threadIdx.x; i < list.count; i += blockDim.x) consume(list[i]);
}

// By all threads, when their loads and stores are done: true in the last block.
__device__ bool all_blocks_are_done(StreamWords const& words) {
  __syncthreads();
  if (gridDim.x == 1) return true;
  return __syncthreads_or(threadIdx.x == 0 && is_last_block(words)) != 0;
}

// One block: for a kernel of more blocks behind it, which should not be resident meanwhile.
__global__ void await_list_kernel(StreamWords const words,
                                  __grid_constant__ StreamList<AwaitedCounter> const list) {
  begin_behind_others();
  if (await_list(words, list)) consume_list(list);
}

constexpr u32 batch = 4;  // units that a thread loads before it stores them

// A unit's place in the source. `at`: a piece that is not behind the unit's; becomes the unit's.
__device__ u64 unit_in_source(StreamGather const& all, u64 unit, u64 units, u32& at) {
  auto const [number, rest] = exchange::unit_of(unit, units);
  while (number >= all.pieces[at].end) ++at;
  auto const& piece = all.pieces[at];
  u64 const place = piece.source == StreamPiece::listed ? all.places[number]
                                                        : piece.source + (number - piece.begin);
  return place * units + rest;
}

// A thread takes every `threads`-th unit. `first`: where its first ones are in the source.
template <class V>
__device__ void gather_units(StreamGather const& all, u32 odd, u64 thread, u64 threads,
                             u64 (&first)[batch]) {
  u64 const units = all.element / sizeof(V), count = all.count * units;
  auto const* const source = static_cast<V const*>(all.source);
  u32 from = 0, to = 0;
  for (u64 begin = thread; begin < count; begin += batch * threads) {
    V value[batch];
#pragma unroll
    for (u32 k = 0; k < batch; ++k)
      if (u64 const i = begin + k * threads; i < count) {
        if (begin != thread) first[k] = unit_in_source(all, i, units, from);
        value[k] = source[first[k]];
      }
#pragma unroll
    for (u32 k = 0; k < batch; ++k)
      if (u64 const i = begin + k * threads; i < count) {
        u64 const number = exchange::unit_of(i, units).number;
        while (number >= all.pieces[to].end) ++to;
        auto const& piece = all.pieces[to];
        reinterpret_cast<V*>(piece.target + odd * piece.half)[i - piece.begin * units] = value[k];
      }
  }
}

template <class V>
__global__ void gather_kernel(StreamWords const words,
                              __grid_constant__ StreamGather const gather) {
  u64 const thread = u64{blockIdx.x} * blockDim.x + threadIdx.x;
  u64 const threads = u64{blockDim.x} * gridDim.x;
  // The lists never change, so they are read before the work in front of this is over.
  u64 first[batch] = {};
  u32 at = 0;
#pragma unroll
  for (u32 k = 0; k < batch; ++k)
    if (u64 const i = thread + k * threads; i < gather.count * (gather.element / sizeof(V)))
      first[k] = unit_in_source(gather, i, gather.element / sizeof(V), at);
  begin_behind_others();
  u32 const step = memory::load_relaxed(gather.step);
  if (gather.credits.count != 0) {
    if (!await_list(words, gather.credits)) return;
  } else if (has_ended(words)) {  // no block of this kernel changes that
    return;
  }
  gather_units<V>(gather, step % 2, thread, threads, first);
  if (!all_blocks_are_done(words)) return;
  consume_list(gather.credits);
  for (u32 i = threadIdx.x; i < gather.pieces.count; i += blockDim.x)
    if (auto* const counter = gather.pieces[i].counter) memory::add(counter, 1, Order::system);
}

// Takes what has come; `work`: by each thread.
template <class Work>
__device__ void scatter_and_tell(StreamWords const& words, StreamScatter const& scatter,
                                 Work const& work) {
  begin_behind_others();
  u32 const step = memory::load_relaxed(scatter.step);
  if (!await_list(words, scatter.awaited)) return;
  work({step % 2, u64{blockIdx.x} * blockDim.x + threadIdx.x, u64{blockDim.x} * gridDim.x});
  if (!all_blocks_are_done(words)) return;
  consume_list(scatter.awaited);
  for (u32 i = threadIdx.x; i < scatter.credits.count; i += blockDim.x)
    memory::add(scatter.credits[i], 1, Order::system);
  if (threadIdx.x == 0) memory::store_relaxed(scatter.step, step + 1);
}

template <class V>
__global__ void replace_kernel(StreamWords const words,
                               __grid_constant__ StreamScatter const scatter) {
  scatter_and_tell(words, scatter,
                   [&](exchange::Share const& share) { exchange::replace<V>(scatter, share); });
}

template <class T>
__global__ void combine_kernel(StreamWords const words,
                               __grid_constant__ StreamScatter const scatter) {
  scatter_and_tell(words, scatter,
                   [&](exchange::Share const& share) { exchange::combine<T>(scatter, share); });
}

StreamExchangeWay way_of_units(u64 units) {
  auto const blocks = static_cast<u32>(
      std::clamp<u64>((units + units_a_block - 1) / units_a_block, 1, most_exchange_blocks));
  return {.blocks = blocks, .fused = blocks <= most_early_blocks};
}

// A large grid must not wait: it could keep the kernels off the GPU that it waits for. So a warp
// waits in front of it, and the list becomes empty.
cudaError_t wait_before(cudaStream_t stream, StreamWords const& words,
                        StreamList<AwaitedCounter>& list) {
  if (list.count == 0) return cudaSuccess;
  auto const all = std::exchange(list, StreamList<AwaitedCounter>());
  return run_behind(&await_list_kernel, 1, 32, stream, words, all);
}

template <class Visit>
void for_each_kernel(Visit&& visit) {
  visit(reinterpret_cast<void const*>(&await_list_kernel));
  for (u32 unit = 1; unit <= 16; unit *= 2)
    exchange::with_unit(unit, [&](auto one) {
      visit(reinterpret_cast<void const*>(&gather_kernel<decltype(one)>));
      visit(reinterpret_cast<void const*>(&replace_kernel<decltype(one)>));
    });
  for (u32 number = 1; number <= static_cast<u32>(StreamNumber::float64); ++number)
    exchange::with_number(StreamNumber{number}, [&](auto one) {
      visit(reinterpret_cast<void const*>(&combine_kernel<decltype(one)>));
    });
}

}  // namespace

cudaError_t load_exchange_kernels() {
  auto status = cudaSuccess;
  for_each_kernel([&](void const* kernel) {
    cudaFuncAttributes found{};
    if (status == cudaSuccess) status = cudaFuncGetAttributes(&found, kernel);
  });
  return status;
}

StreamExchangeWay way_of(StreamGather const& gather) {
  return way_of_units(exchange::units(gather));
}
StreamExchangeWay way_of(StreamScatter const& scatter) {
  return way_of_units(exchange::units(scatter));
}

cudaError_t gather(cudaStream_t stream, StreamWords const& words, StreamGather const& gather) {
  auto const way = way_of(gather);
  auto rest = gather;
  auto status = way.fused ? cudaSuccess : wait_before(stream, words, rest.credits);
  if (status != cudaSuccess) return status;
  exchange::with_unit(gather.unit, [&](auto unit) {
    status = run_behind(&gather_kernel<decltype(unit)>, way.blocks, exchange_threads, stream, words,
                        rest);
  });
  return status;
}

cudaError_t scatter(cudaStream_t stream, StreamWords const& words, StreamScatter const& scatter) {
  auto const way = way_of(scatter);
  auto rest = scatter;
  auto status = way.fused ? cudaSuccess : wait_before(stream, words, rest.awaited);
  if (status != cudaSuccess) return status;
  if (scatter.combine == StreamCombine::replace)
    exchange::with_unit(scatter.unit, [&](auto unit) {
      status = run_behind(&replace_kernel<decltype(unit)>, way.blocks, exchange_threads, stream,
                          words, rest);
    });
  else
    exchange::with_number(scatter.number, [&](auto number) {
      status = run_behind(&combine_kernel<decltype(number)>, way.blocks, exchange_threads, stream,
                          words, rest);
    });
  return status;
}

}  // namespace meshpost::cuda
