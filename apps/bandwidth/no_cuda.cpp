// Stands in for cuda.cpp in a build without CUDA.
#include "variants.hpp"

namespace bandwidth {
std::vector<Variant> cuda_variants() { return {}; }
}  // namespace bandwidth
