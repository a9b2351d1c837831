#include "net/ofi/memory.hpp"

#include <iterator>

namespace meshpost::net::ofi {

Memory::Memory(fid_domain* domain, fid_ep* endpoint, Provider const& provider)
    : domain_(domain),
      endpoint_(endpoint),
      register_sources_(provider.register_sources),
      mode_(provider.info->domain_attr->mr_mode) {}

Handle<fid_mr> Memory::add(void const* memory, u64 size, u64 access, std::optional<u32> gpu) {
  iovec const range{const_cast<void*>(memory), size};
  fi_mr_attr wanted{};
  wanted.mr_iov = &range;
  wanted.iov_count = 1;
  wanted.access = access;
  wanted.requested_key = next_key_++;  // used unless the provider chooses the key (FI_MR_PROV_KEY)
  wanted.iface = gpu ? FI_HMEM_CUDA : FI_HMEM_SYSTEM;
  if (gpu) wanted.device.cuda = static_cast<int>(*gpu);
  fid_mr* region = nullptr;
  check(fi_mr_regattr(domain_, &wanted, 0, &region),
        "fi_mr_regattr of " + std::to_string(size) + " bytes" +
            (gpu ? " of cuda:" + std::to_string(*gpu) : ""));
  Handle<fid_mr> added(region);
  if (mode_ & FI_MR_ENDPOINT) {
    check(fi_mr_bind(region, &endpoint_->fid, 0), "fi_mr_bind");
    check(fi_mr_enable(region), "fi_mr_enable");
  }
  return added;
}

RemoteMemory Memory::expose(void* memory, u64 size, std::optional<u32> gpu) {
  auto added = add(memory, size, FI_REMOTE_WRITE | FI_WRITE, gpu);
  has_gpus_ |= gpu.has_value();
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

std::optional<Memory::Source> Memory::exposed(std::span<char const> bytes) const {
  if (!register_sources_ && !has_gpus_) return std::nullopt;
  auto const after = exposed_.upper_bound(bytes.data());
  if (after == exposed_.begin()) return std::nullopt;
  auto const& [begin, range] = *std::prev(after);
  if (bytes.data() + bytes.size() > begin + range.size) return std::nullopt;
  return Source{range.descriptor, nullptr};
}

Memory::Source Memory::source(std::span<char const> bytes) {
  if (!register_sources_ || bytes.empty()) return {};
  auto registered = add(bytes.data(), bytes.size(), FI_WRITE);
  void* const descriptor = fi_mr_desc(registered.get());
  return {descriptor, std::move(registered)};
}

void Memory::close() {
  exposed_.clear();
  kept_.clear();
}

}  // namespace meshpost::net::ofi
