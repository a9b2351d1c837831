#include "without_peer.hpp"

#include "meshpost/base/error.hpp"

#ifdef MESHPOST_APP_CUDA
#include <cuda_runtime.h>
#endif

namespace meshpost::gemm {

#ifdef MESHPOST_APP_CUDA
void copy_without_peer(Stream& stream, Device const& to, Device const& from,
                       PitchedCopy const& rows) {
  int const target = static_cast<int>(to.index()), source = static_cast<int>(from.index());
  auto const native = static_cast<cudaStream_t>(stream.native());
  cudaError_t status = cudaSuccess;
  if (rows.rows == 1) {
    status = cudaMemcpyPeerAsync(rows.target, target, rows.source, source, rows.width, native);
  } else {  // the only call that takes pitches and two GPUs by number
    cudaMemcpy3DPeerParms copy{};
    copy.dstDevice = target;
    copy.srcDevice = source;
    copy.dstPtr = make_cudaPitchedPtr(rows.target, rows.target_row, rows.width, rows.rows);
    copy.srcPtr =
        make_cudaPitchedPtr(const_cast<void*>(rows.source), rows.source_row, rows.width, rows.rows);
    copy.extent = make_cudaExtent(rows.width, rows.rows, 1);
    status = cudaMemcpy3DPeerAsync(&copy, native);
  }
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
