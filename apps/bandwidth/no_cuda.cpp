// Stands in for cuda.cpp in a build without CUDA.
#include "variants.hpp"

namespace bandwidth {
std::vector<Variant> cuda_variants(
    std::vector<std::shared_ptr<meshpost::Device>> const& /*devices*/) {
  return {};
}
}  // namespace bandwidth
