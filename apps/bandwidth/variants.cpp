#include "variants.hpp"

#include <meshpost/copy/copy.hpp>

#include <algorithm>
#include <cstring>

namespace bandwidth {

using namespace meshpost;

std::vector<Variant> all_variants(std::vector<std::shared_ptr<Device>> const& devices) {
  std::vector<Variant> all{{"copy", "meshpost::copy", [](Place const&, Place const&) {
                              return [](void* target, void const* source, Bytes size) {
                                copy(target, source, size);
                              };
                            }}};
  if (std::ranges::any_of(devices, [](auto const& one) { return one->kind() == "cuda"; }))
    for (auto& variant : cuda_variants()) all.push_back(std::move(variant));
  else
    all.push_back({"memcpy", "memcpy, by one thread", [](Place const&, Place const&) {
                     return [](void* target, void const* source, Bytes size) {
                       std::memcpy(target, source, size);
                     };
                   }});
  return all;
}

}  // namespace bandwidth
