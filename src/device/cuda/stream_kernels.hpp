#pragma once
#include <cuda_runtime_api.h>

#include <span>

#include "meshpost/device/stream_operations.hpp"

// The kernels of streams' operations, and of Device::raise. All return CUDA's error.

namespace meshpost {
struct StreamChannel;
struct StreamReceive;
struct StreamPost;
struct StreamGather;
struct StreamScatter;
struct StreamExchangeWay;
}  // namespace meshpost

namespace meshpost::cuda {

/// Loads the kernels into the current device. Later a kernel that waits may run there, and CUDA
/// would load others only when it has ended.
cudaError_t load_stream_kernels();
cudaError_t load_channel_kernels();  // part of it
cudaError_t load_exchange_kernels();

StreamWay way_of(StreamPut const& put);
StreamExchangeWay way_of(StreamGather const& gather);
StreamExchangeWay way_of(StreamScatter const& scatter);

cudaError_t put(cudaStream_t stream, StreamWords const& words, StreamPut const& put);
/// At most AwaitedCounter::most counters.
cudaError_t await(cudaStream_t stream, StreamWords const& words,
                  std::span<AwaitedCounter const> counters);
cudaError_t post(cudaStream_t stream, StreamWords const& words, StreamRing const& ring,
                 u32 operation, StreamPut const& put, bool until_taken);
/// `far`: null unless the other end is out of reach.
cudaError_t send(cudaStream_t stream, StreamWords const& words, StreamChannel const& to,
                 StreamPut const& put, StreamPost const* far);
cudaError_t receive(cudaStream_t stream, StreamWords const& words, StreamChannel const& from,
                    StreamReceive const& into, StreamPost const* far);
cudaError_t gather(cudaStream_t stream, StreamWords const& words, StreamGather const& gather);
cudaError_t scatter(cudaStream_t stream, StreamWords const& words, StreamScatter const& scatter);
cudaError_t raise(cudaStream_t stream, u32* counter, u32 value, u32* origin_word, u32 origin);

}  // namespace meshpost::cuda
