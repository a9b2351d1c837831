#include "net/ofi/memory.hpp"

#include <iterator>

namespace meshpost::net::ofi {

Memory::Memory(fid_domain* domain, fid_ep* endpoint, Provider const& provider)
    : domain_(domain),
      endpoint_(endpoint),
      register_sources_(provider.register_sources),
      mode_(provider.info->domain_attr->mr_mode) {}

Handle<fid_mr> Memory::add(void const* memory, u64 size, u64 access) {
  fid_mr* region = nullptr;
  // The key asked for counts unless the provider chooses (FI_MR_PROV_KEY).
  check(fi_mr_reg(domain_, memory, size, access, 0, next_key_++, 0, &region, nullptr),
        "fi_mr_reg of " + std::to_string(size) + " bytes");
  Handle<fid_mr> added(region);
  if (mode_ & FI_MR_ENDPOINT) {
    check(fi_mr_bind(region, &endpoint_->fid, 0), "fi_mr_bind");
    check(fi_mr_enable(region), "fi_mr_enable");
  }
  return added;
}

RemoteMemory Memory::expose(void* memory, u64 size) {
  u64 const access = FI_REMOTE_WRITE | (register_sources_ ? FI_WRITE : 0);
  auto added = add(memory, size, access);
  u64 const base = mode_ & FI_MR_VIRT_ADDR ? reinterpret_cast<u64>(memory) : 0;
  RemoteMemory const exposed{base, fi_mr_key(added.get())};
  auto& range = exposed_[static_cast<char const*>(memory)];
  if (size > range.size) range = {size, fi_mr_desc(added.get())};
  kept_.push_back(std::move(added));
  return exposed;
}

void* Memory::own(void* memory, u64 size) {
  if (!register_sources_) return nullptr;
  kept_.push_back(add(memory, size, FI_SEND | FI_RECV | FI_WRITE));
  return fi_mr_desc(kept_.back().get());
}

Memory::Source Memory::source(std::span<char const> bytes) {
  if (!register_sources_ || bytes.empty()) return {};
  if (auto after = exposed_.upper_bound(bytes.data()); after != exposed_.begin()) {
    auto const& [begin, range] = *std::prev(after);
    if (bytes.data() + bytes.size() <= begin + range.size) return {range.descriptor, nullptr};
  }
  auto registered = add(bytes.data(), bytes.size(), FI_WRITE);
  void* const descriptor = fi_mr_desc(registered.get());
  return {descriptor, std::move(registered)};
}

void Memory::close() {
  exposed_.clear();
  kept_.clear();
}

}  // namespace meshpost::net::ofi
