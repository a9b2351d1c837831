#include "compat/cuda_on_cpu.hpp"

#include "meshpost/base/error.hpp"
#include "meshpost/compat/detail/cuda_on_cpu.hpp"
#include "meshpost/device/cpu/block.hpp"

namespace meshpost::compat {
namespace {

thread_local u32 this_block = 0, all_blocks = 0;  // each rank has a worker thread of its own

cpu::FiberView& here() {
  auto* const fiber = cpu::current_fiber();
  if (!fiber)
    throw Error(Kind::misuse, "threadIdx, blockIdx or __syncthreads", "it was used outside of a kernel",
                "use it in the kernel");
  return *fiber;
}

}  // namespace

void enter_block(u32 block, u32 blocks) {
  this_block = block;
  all_blocks = blocks;
}

Dim3 thread_index() { return here().index; }
Dim3 block_extent() { return here().extent; }
Dim3 block_index() { return here(), Dim3{this_block, 0, 0}; }
Dim3 grid_extent() { return here(), Dim3{all_blocks, 1, 1}; }
void sync_threads() {
  if (auto& fiber = here(); fiber.threads > 1) cpu::fiber_sync(&fiber);
}

}  // namespace meshpost::compat
