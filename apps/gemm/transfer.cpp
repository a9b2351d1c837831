#include "transfer.hpp"

#include <cstring>

#include "meshpost/base/error.hpp"

#ifdef MESHPOST_APP_CUDA
#include <cuda_runtime_api.h>
#endif

namespace meshpost::gemm {
namespace {

#ifdef MESHPOST_APP_CUDA
// The one call that takes both a pitch and two GPUs, with peer access or without.
void between_gpus(Stream& stream, Device const& device, void* target, Device const& owner,
                  void const* source, Piece const& piece) {
  cudaMemcpy3DPeerParms copy{};
  copy.dstDevice = static_cast<int>(device.index());
  copy.srcDevice = static_cast<int>(owner.index());
  copy.dstPtr = make_cudaPitchedPtr(target, piece.target_stride, piece.size, piece.columns);
  copy.srcPtr = make_cudaPitchedPtr(const_cast<void*>(source), piece.source_stride, piece.size,
                                    piece.columns);
  copy.extent = make_cudaExtent(piece.size, piece.columns, 1);
  auto const status = cudaMemcpy3DPeerAsync(&copy, static_cast<cudaStream_t>(stream.native()));
  if (status != cudaSuccess)
    throw Error(Kind::device_failed,
                "copy " + std::to_string(piece.columns) + " x " + std::to_string(piece.size) +
                    " bytes from " + owner.name() + " to " + device.name(),
                cudaGetErrorString(status), "see the first such error");
}
#endif

}  // namespace

void transfer(Stream& stream, Device const& device, void* target, Device const& owner,
              void const* source, Piece const& piece) {
  auto const [size, columns, target_stride, source_stride] = piece;
  if (columns == 1 || (size == target_stride && size == source_stride)) {
    stream.copy(target, source, Bytes{size * columns});
    return;
  }
#ifdef MESHPOST_APP_CUDA
  if (device.kind() == "cuda") return between_gpus(stream, device, target, owner, source, piece);
#endif
  (void)device, (void)owner;
  stream.call([=] {
    for (u64 j = 0; j < columns; ++j)
      std::memcpy(static_cast<char*>(target) + j * target_stride,
                  static_cast<char const*>(source) + j * source_stride, size);
  });
}

}  // namespace meshpost::gemm
