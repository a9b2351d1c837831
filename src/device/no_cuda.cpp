// Stands in for src/device/cuda/ in a build without CUDA.
#include "device/backends.hpp"

namespace meshpost {
std::unique_ptr<Backend> make_cuda_backend() { return nullptr; }
}  // namespace meshpost
