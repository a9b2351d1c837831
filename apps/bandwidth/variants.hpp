#pragma once
#include <meshpost/meshpost.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bandwidth {

/// One way to have bytes copied.
struct Variant {
  using Copier = std::function<void(void* target, void const* source, meshpost::Bytes size)>;

  std::string name;
  std::string meaning;
  /// A copier from one place to another, which returns when the bytes have arrived; what the
  /// variant needs stays switched on as long as it lives. Null where the variant does not apply.
  std::function<Copier(meshpost::Place const& from, meshpost::Place const& to)> make;
};

/// The library's, and what there is without it on these devices.
std::vector<Variant> all_variants(std::vector<std::shared_ptr<meshpost::Device>> const& devices);

/// Of CUDA: the driver's own copies, with and without peer access; none in a build without CUDA.
std::vector<Variant> cuda_variants();

}  // namespace bandwidth
