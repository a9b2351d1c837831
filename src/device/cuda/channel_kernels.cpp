// Compiled as CUDA. Messages between streams; the argument for their order is beside StreamChannel.
// clang-format off
// A block's share in it: __syncthreads() orders the stores (loads) of all threads of the block before
// the release of its first thread, which is cumulative; and what that thread has acquired before
// those of the others. That thread alone looks whether the stream has ended, which another block may
// store at any time, and the block votes: all its threads leave, or none.
// clang-format on
#include <algorithm>

#include "device/cuda/stream_kernels.hpp"
#include "device/cuda/stream_launch.hpp"
#include "meshpost/device/stream_channel.hpp"

namespace meshpost::cuda {
namespace {

constexpr u32 channel_threads = 512;
constexpr u32 most_channel_blocks = 64;

struct ChunkWait {
  u32 operation;  // StreamNote::Operation
  u32 first;      // chunk of the message
  u32 chunk;      // of the message, that it waits for
  u32 chunks;
};

__device__ void tell(StreamWords const& words, StreamChannel const& channel,
                     ChunkWait const& wait) {
  auto& note = *words.note;
  u32 const moved = memory::load_relaxed(words.moved);
  memory::store_relaxed(&note.operation, wait.operation);
  memory::store_relaxed(&note.window, channel.window);
  memory::store_relaxed(&note.tag, channel.tag);
  memory::store_relaxed(&note.peer, channel.peer);
  // Another block may wait for an earlier chunk.
  bool const begun = wait.operation == StreamNote::send || channel.had_come(wait.first);
  memory::store_relaxed(&note.come, begun ? wait.chunk : 0);
  memory::store_relaxed(&note.count, wait.chunks);
  memory::store_relaxed(&note.consumed, wait.first);
  memory::store_relaxed(&note.all, moved);
}

// By one thread. False: the stream was poisoned, or another block has found a misfit, which this
// one may wait for in vain.
template <class Done>
__device__ bool await_chunk(StreamWords const& words, StreamChannel const& channel,
                            ChunkWait const& wait, Done const& done) {
  bool told = false;
  for (u32 looks = 1; !done(); ++looks) {
    if (looks % looks_before_host != 0) continue;
    if (has_ended(words)) return false;
    tell(words, channel, wait);
    told = true;
    bool const poisoned = memory::load_acquire(&words.note->poisoned) != 0;
    if (poisoned) memory::store_relaxed(words.ended, 1);
    memory::store(&words.note->waiting, u32{poisoned ? StreamNote::ended : StreamNote::yes},
                  Order::system);
    if (poisoned) return false;
  }
  if (told) memory::store_relaxed(&words.note->waiting, StreamNote::no);
  return true;
}

__device__ void has_moved(StreamWords const& words) { memory::add(words.moved, 1, Order::none); }

__device__ u64 bytes_in(StreamChannel const& channel, u64 whole, u32 chunk) {
  u64 const offset = chunk * channel.slot_bytes, left = whole - offset;
  return left < channel.slot_bytes ? left : channel.slot_bytes;
}

// A short message whose words lie well: each thread has one of them, and loads it while others of
// its loads are in flight.
__device__ bool is_short(StreamChannel const& channel, void const* memory, u64 bytes) {
  return bytes % 4 == 0 && bytes <= u64{4} * blockDim.x && bytes <= channel.slot_bytes &&
         reinterpret_cast<u64>(memory) % 4 == 0;
}

// True if the message in the chunk's slot does not fit. All threads of the block. Several blocks
// may find it: of one message they store the same; else the host reads one of two truths, or a mix
// of numbers of the same channel.
__device__ bool refuses(StreamWords const& words, StreamChannel const& from, u64 whole,
                        StreamReceive const& into, u64 expected) {
  if (into.count ? into.fits(whole) : whole == expected) return false;
  if (threadIdx.x == 0) {
    memory::store_relaxed(words.ended, 1);
    report_misfit(words, from, whole, into);
  }
  return true;
}

__global__ void send_kernel(StreamWords const words, StreamChannel const to, StreamPut const put) {
  begin_behind_others();
  bool const one_word = !put.units && is_short(to, put.source, put.bytes);
  bool const mine = one_word && threadIdx.x < put.bytes / 4;
  u32 const word = mine ? static_cast<u32 const*>(put.source)[threadIdx.x] : 0;
  u32 const first = memory::load_relaxed(to.number);
  bool const over = threadIdx.x == 0 && has_ended(words);
  u64 const whole = put.size();
  u32 const chunks = to.chunks(whole);
  for (u32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    u32 const n = first + chunk;
    bool const ends = threadIdx.x == 0 &&
                      (over || !await_chunk(words, to, {StreamNote::send, first, chunk, chunks},
                                            [&] { return to.is_free(n); }));
    if (__syncthreads_or(ends)) return;
    if (mine) reinterpret_cast<u32*>(to.bytes_of(n))[threadIdx.x] = word;
    if (!one_word)
      memory::copy(to.bytes_of(n), static_cast<char const*>(put.source) + chunk * to.slot_bytes,
                   bytes_in(to, whole, chunk), threadIdx.x, blockDim.x);
    if (threadIdx.x == 0) to.header(n)->whole = whole;
    __syncthreads();
    if (threadIdx.x != 0) continue;
    to.publish(n);
    has_moved(words);
  }
  if (threadIdx.x == 0 && is_last_block(words)) memory::store_relaxed(to.number, first + chunks);
}

// With a count it is one block, which alone sees how long the message is.
__global__ void receive_kernel(StreamWords const words, StreamChannel const from,
                               StreamReceive const into) {
  begin_behind_others();
  u32 const first = memory::load_relaxed(from.number);
  bool const over = threadIdx.x == 0 && has_ended(words);
  u64 whole = into.bytes;
  u32 chunks = from.chunks(whole);
  bool const one_word = !into.count && is_short(from, into.target, whole);
  bool const mine = one_word && threadIdx.x < whole / 4;
  for (u32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    u32 const n = first + chunk;
    bool const ends =
        threadIdx.x == 0 &&
        (over || !await_chunk(words, from, {StreamNote::receive, first, chunk, chunks},
                              [&] { return from.has_come(n); }));
    if (__syncthreads_or(ends)) return;
    u64 const named = from.header(n)->whole;
    u32 const word = mine ? reinterpret_cast<u32 const*>(from.bytes_of(n))[threadIdx.x] : 0;
    if (refuses(words, from, named, into, whole)) return;
    if (into.count && chunk == 0) {
      whole = named, chunks = from.chunks(named);
      if (threadIdx.x == 0) *into.count = named / into.unit;
    }
    if (mine) static_cast<u32*>(into.target)[threadIdx.x] = word;
    if (!one_word)
      memory::copy(static_cast<char*>(into.target) + chunk * from.slot_bytes, from.bytes_of(n),
                   bytes_in(from, whole, chunk), threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x != 0) continue;
    from.free(n);
    has_moved(words);
  }
  if (threadIdx.x == 0 && is_last_block(words)) memory::store_relaxed(from.number, first + chunks);
}

// Out of reach: one block, so chunks leave in order.
__global__ void send_far_kernel(StreamWords const words, StreamChannel const to,
                                StreamPut const put, StreamPost const far) {
  begin_behind_others();
  bool const over = threadIdx.x == 0 && has_ended(words);
  auto const& ring = far.ring;
  u32 const first = memory::load_relaxed(to.number);
  u64 const whole = put.size();
  u32 const chunks = to.chunks(whole);
  u32 posted = memory::load_relaxed(ring.posted);
  for (u32 chunk = 0; chunk < chunks; ++chunk, ++posted) {
    u32 const n = first + chunk;
    bool const ends =
        threadIdx.x == 0 && (over ||
                             !await_chunk(words, to, {StreamNote::send, first, chunk, chunks},
                                          [&] { return to.is_free(n); }) ||
                             !await_taken(words, ring, posted, StreamRing::slots));
    if (__syncthreads_or(ends)) return;
    char* const bytes = ring.bytes_of(posted);
    u64 const size = bytes_in(to, whole, chunk);
    memory::copy(bytes + ChunkHeader::pitch,
                 static_cast<char const*>(put.source) + chunk * to.slot_bytes, size, threadIdx.x,
                 blockDim.x);
    if (threadIdx.x == 0) reinterpret_cast<ChunkHeader*>(bytes)->whole = whole;
    __syncthreads();
    if (threadIdx.x != 0) continue;
    u64 const at = to.slot_at(n), all = ChunkHeader::pitch + size;
    memory::store_relaxed(ring.posted, posted + 1);
    publish(ring, posted,
            {.operation = far.operation, .offset = at, .bytes = all, .whole = at + all});
    has_moved(words);
  }
  if (threadIdx.x == 0) memory::store_relaxed(to.number, first + chunks);
}

__global__ void receive_far_kernel(StreamWords const words, StreamChannel const from,
                                   StreamReceive const into, StreamPost const far) {
  begin_behind_others();
  bool const over = threadIdx.x == 0 && has_ended(words);
  auto const& ring = far.ring;
  u32 const first = memory::load_relaxed(from.number);
  u64 whole = into.bytes;
  u32 chunks = from.chunks(whole);
  u32 posted = memory::load_relaxed(ring.posted);
  for (u32 chunk = 0; chunk < chunks; ++chunk, ++posted) {
    u32 const n = first + chunk;
    bool const ends =
        threadIdx.x == 0 &&
        (over || !await_chunk(words, from, {StreamNote::receive, first, chunk, chunks},
                              [&] { return from.has_come(n); }));
    if (__syncthreads_or(ends)) return;
    u64 const named = from.header(n)->whole;
    if (refuses(words, from, named, into, whole)) return;
    if (into.count && chunk == 0) {
      whole = named, chunks = from.chunks(named);
      if (threadIdx.x == 0) *into.count = named / into.unit;
    }
    memory::copy(static_cast<char*>(into.target) + chunk * from.slot_bytes, from.bytes_of(n),
                 bytes_in(from, whole, chunk), threadIdx.x, blockDim.x);
    __syncthreads();
    bool const full = threadIdx.x == 0 && !await_taken(words, ring, posted, StreamRing::slots);
    if (__syncthreads_or(full)) return;
    if (threadIdx.x != 0) continue;
    memory::store_relaxed(ring.posted, posted + 1);
    publish(ring, posted, {.operation = far.operation});
    has_moved(words);
  }
  if (threadIdx.x == 0) memory::store_relaxed(from.number, first + chunks);
}

u32 blocks_for(StreamChannel const& channel, u64 bytes) {
  return std::min({channel.chunks(bytes), channel.slot_count, most_channel_blocks});
}

}  // namespace

cudaError_t load_channel_kernels() {
  cudaFuncAttributes found{};
  for (auto const* const kernel :
       {reinterpret_cast<void const*>(&send_kernel), reinterpret_cast<void const*>(&receive_kernel),
        reinterpret_cast<void const*>(&send_far_kernel),
        reinterpret_cast<void const*>(&receive_far_kernel)})
    if (auto const status = cudaFuncGetAttributes(&found, kernel); status != cudaSuccess)
      return status;
  return cudaSuccess;
}

cudaError_t send(cudaStream_t stream, StreamWords const& words, StreamChannel const& to,
                 StreamPut const& put, StreamPost const* far) {
  if (far) return run_behind(&send_far_kernel, 1, channel_threads, stream, words, to, put, *far);
  return run_behind(&send_kernel, blocks_for(to, put.bytes), channel_threads, stream, words, to,
                    put);
}

cudaError_t receive(cudaStream_t stream, StreamWords const& words, StreamChannel const& from,
                    StreamReceive const& into, StreamPost const* far) {
  if (far)
    return run_behind(&receive_far_kernel, 1, channel_threads, stream, words, from, into, *far);
  u32 const blocks = into.count ? 1 : blocks_for(from, into.bytes);
  return run_behind(&receive_kernel, blocks, channel_threads, stream, words, from, into);
}

}  // namespace meshpost::cuda
