#pragma once
#include <meshpost/meshpost.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bandwidth {

/// One way to copy bytes.
struct Variant {
  using Copier = std::function<void(void* target, void const* source, meshpost::Bytes size)>;

  std::string name;
  std::string meaning;
  /// A copier from one place to another. A call returns when the bytes have arrived. Settings that
  /// the variant needs stay on while the copier lives. Null if the variant does not apply.
  std::function<Copier(meshpost::Place const& from, meshpost::Place const& to)> make;
};

/// Variants of the library, and those that these devices have without it.
std::vector<Variant> all_variants(std::vector<std::shared_ptr<meshpost::Device>> const& devices);

/// Variants of CUDA: the driver's own copies, with and without peer access. None in a build without
/// CUDA.
std::vector<Variant> cuda_variants(std::vector<std::shared_ptr<meshpost::Device>> const& devices);

/// True if peer access may make this copy faster: it is between two devices. Other pairs are
/// controls. With and without peer access they must take as long.
bool peer_access_helps(meshpost::Place const& from, meshpost::Place const& to);

}  // namespace bandwidth
