// Compiled as CUDA where there is CUDA: a kernel of the library's own.
#include "rma/drain.hpp"

#include "meshpost/rma/kernel.hpp"

namespace meshpost::detail {

KernelImage drain_image() { return image_of<DrainLanes>(); }

}  // namespace meshpost::detail
