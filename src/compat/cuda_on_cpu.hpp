#pragma once
#include "meshpost/base/types.hpp"

namespace meshpost::compat {

/// Tells the calling worker thread which block it runs, and of how many: what blockIdx and gridDim
/// then say.
void enter_block(u32 block, u32 blocks);

}  // namespace meshpost::compat
