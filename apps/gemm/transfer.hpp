#pragma once
#include "meshpost/device/device.hpp"

namespace meshpost::gemm {

/// `columns` pieces of `size` bytes, which begin `stride` bytes apart on each side.
struct Piece {
  u64 size = 0, columns = 0;
  u64 target_stride = 0, source_stride = 0;
};

/// Enqueues the copy of a part of a block of `owner` into memory of `device`, whose stream it is.
void transfer(Stream& stream, Device const& device, void* target, Device const& owner,
              void const* source, Piece const& piece);

}  // namespace meshpost::gemm
