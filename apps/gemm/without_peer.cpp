#include "without_peer.hpp"

#include "meshpost/base/error.hpp"

#ifdef MESHPOST_APP_CUDA
#include <cuda_runtime.h>
#endif

namespace meshpost::gemm {

#ifdef MESHPOST_APP_CUDA
void copy_without_peer(Stream& stream, Device const& to, Device const& from,
                       PitchedCopy const& rows) {
  // The one call that takes pitches and two GPUs by number.
  cudaMemcpy3DPeerParms copy{};
  copy.dstDevice = static_cast<int>(to.index());
  copy.srcDevice = static_cast<int>(from.index());
  u64 const target_row = rows.rows > 1 ? rows.target_row : rows.width;
  u64 const source_row = rows.rows > 1 ? rows.source_row : rows.width;
  copy.dstPtr = make_cudaPitchedPtr(rows.target, target_row, rows.width, rows.rows);
  copy.srcPtr =
      make_cudaPitchedPtr(const_cast<void*>(rows.source), source_row, rows.width, rows.rows);
  copy.extent = make_cudaExtent(rows.width, rows.rows, 1);
  auto const status = cudaMemcpy3DPeerAsync(&copy, static_cast<cudaStream_t>(stream.native()));
  if (status != cudaSuccess)
    throw Error(Kind::device_failed,
                "copy " + std::to_string(rows.rows) + " rows of " + std::to_string(rows.width) +
                    " bytes from " + from.name() + " to " + to.name(),
                cudaGetErrorString(status), "see the first such error");
}
#else
void copy_without_peer(Stream& stream, Device const&, Device const&, PitchedCopy const& rows) {
  stream.copy(rows);
}
#endif

}  // namespace meshpost::gemm
