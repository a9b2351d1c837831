#include "compat/cuda_on_cpu.hpp"

#include <atomic>

#include "meshpost/base/error.hpp"
#include "meshpost/compat/detail/cuda_on_cpu.hpp"
#include "meshpost/device/cpu/block.hpp"

namespace meshpost::compat {
namespace {

// Each rank has its own worker thread. All fibers of the rank store the same.
thread_local std::atomic<u32> this_block = 0, all_blocks = 0;

cpu::FiberView& here() {
  auto* const fiber = cpu::current_fiber();
  if (!fiber)
    throw Error(Kind::misuse, "threadIdx, blockIdx or __syncthreads",
                "it was used outside of a kernel", "use it in the kernel");
  return *fiber;
}

}  // namespace

void enter_block(u32 block, u32 blocks) {
  this_block.store(block, std::memory_order_relaxed);
  all_blocks.store(blocks, std::memory_order_relaxed);
}

Dim3 thread_index() { return here().index; }
Dim3 block_extent() { return here().extent; }
Dim3 block_index() { return here(), Dim3{this_block.load(std::memory_order_relaxed), 0, 0}; }
Dim3 grid_extent() { return here(), Dim3{all_blocks.load(std::memory_order_relaxed), 1, 1}; }
void sync_threads() {
  if (auto& fiber = here(); fiber.threads > 1) cpu::fiber_sync(&fiber);
}

}  // namespace meshpost::compat
