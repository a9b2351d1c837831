#pragma once
#include <memory>

#include "meshpost/device/backend.hpp"

namespace meshpost {

std::unique_ptr<Backend> make_cpu_backend();
/// Null in a build without CUDA.
std::unique_ptr<Backend> make_cuda_backend();

}  // namespace meshpost
