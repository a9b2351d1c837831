#pragma once
#include "meshpost/base/types.hpp"

namespace meshpost::compat {

/// Sets the block of the calling worker thread, and the number of blocks: the values of blockIdx
/// and gridDim.
void enter_block(u32 block, u32 blocks);

}  // namespace meshpost::compat
