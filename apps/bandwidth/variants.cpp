#include "variants.hpp"

#include <meshpost/copy/copy.hpp>

#include <algorithm>
#include <cstring>

namespace bandwidth {

using namespace meshpost;

namespace {

Variant::Copier by_memcpy(Place const& /*from*/, Place const& /*to*/) {
  return [](void* target, void const* source, Bytes size) { std::memcpy(target, source, size); };
}

// As a driver copies between GPUs without peer access: piece by piece into a buffer, and out of it.
Variant::Copier without_peers(Place const& from, Place const& to) {
  if (!peer_access_helps(from, to)) return by_memcpy(from, to);
  auto const buffer = std::make_shared<std::vector<char>>(u64{1} << 20);
  return [buffer](void* target, void const* source, Bytes size) {
    for (u64 at = 0; at < size; at += buffer->size()) {
      u64 const piece = std::min<u64>(buffer->size(), size - at);
      std::memcpy(buffer->data(), static_cast<char const*>(source) + at, piece);
      std::memcpy(static_cast<char*>(target) + at, buffer->data(), piece);
    }
  };
}

}  // namespace

std::vector<Variant> all_variants(std::vector<std::shared_ptr<Device>> const& devices) {
  std::vector<Variant> all{{"copy", "meshpost::copy", [](Place const&, Place const&) {
                              return [](void* target, void const* source, Bytes size) {
                                copy(target, source, size);
                              };
                            }}};
  if (std::ranges::any_of(devices, [](auto const& one) { return one->kind() == "cuda"; }))
    for (auto& variant : cuda_variants(devices)) all.push_back(std::move(variant));
  else {
    all.push_back({"memcpy", "memcpy, by one thread", by_memcpy});
    all.push_back({"no_peers", "the same, between two devices through host memory", without_peers});
  }
  return all;
}

bool peer_access_helps(Place const& from, Place const& to) {
  return from != to && !from.on_host() && !to.on_host();
}

}  // namespace bandwidth
