#include "rma/windows/global_addresses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "meshpost/base/error.hpp"
#include "meshpost/rma/detail/via/message.hpp"

namespace meshpost::detail {

namespace {
constexpr u64 all_numbers = std::numeric_limits<u64>::max() / GlobalAddresses::each;
}

GlobalAddresses::GlobalAddresses(Layout const& layout, Heap const& heap)
    : layout_(layout), heap_(heap) {
  numbers_.add(1, all_numbers - 1);
  auto const& spaces = heap.spaces();
  for (u32 own = 0; own < layout.own_count(); ++own) {
    u64 const size = spaces.stride(own) * layout.device_count();
    end_ = std::min<u64>(end_, (u64{1} << 63) / size);  // so that no address wraps round
    if (reinterpret_cast<u64>(spaces.base(own)) + size > via::Signal::most)
      throw Error(Kind::bad_environment, "symmetric heap",
                  fmt::format("its addresses would go beyond 2^48: {} devices of {} bytes each",
                              layout.device_count(), spaces.stride(own)),
                  "use fewer devices, or a system with addresses of 48 bits");
  }
}

GlobalAddress GlobalAddresses::of(u32 own, void const* address) const {
  auto const& spaces = heap_.spaces();
  u64 const distance = static_cast<u64>(static_cast<char const*>(address) - spaces.base(own));
  u64 const stride = spaces.stride(own), devices = layout_.device_count();
  u64 const part = distance / stride;
  return {static_cast<u32>(part % devices), part / devices * each + distance % stride};
}

std::optional<GlobalAddress> GlobalAddresses::in_heap(u32 own, void const* address,
                                                      u64 bytes) const {
  if (address < heap_.spaces().base(own)) return std::nullopt;
  auto const global = of(own, address);
  bool const inside = global.offset <= heap_.size() && bytes <= heap_.size() - global.offset;
  return inside && !layout_.far(own, global.device) ? std::optional(global) : std::nullopt;
}

char* GlobalAddresses::seen_by(u32 own, GlobalAddress global) const {
  auto const& spaces = heap_.spaces();
  u64 const part = global.offset / each * layout_.device_count() + global.device;
  // Not a pointer to an object: it may lie behind everything that is reserved.
  return reinterpret_cast<char*>(reinterpret_cast<u64>(spaces.base(own)) +  // NOLINT
                                 part * spaces.stride(own) + global.offset % each);
}

char* GlobalAddresses::memory(GlobalAddress global, u64 bytes) const {
  if (!layout_.owns(global.device)) return nullptr;
  auto const inside = [&](u64 offset, u64 size) {
    return offset <= size && bytes <= size - offset;
  };
  if (!is_users(global.offset))
    return inside(global.offset, heap_.size()) ? heap_.at(global.device, global.offset) : nullptr;
  std::shared_lock const lock(mutex_);
  auto const found = ranges_.find({global.device, global.offset / each});
  if (found == ranges_.end()) return nullptr;
  auto const& range = found->second;
  u64 const offset =
      global.offset % each - skew(range.begin);  // in front of it: large, as it wraps
  return inside(offset, range.bytes) ? range.begin + offset : nullptr;
}

u64 GlobalAddresses::take_numbers() {
  auto const first = numbers_.take(layout_.ranks_per_device);
  if (first && *first + layout_.ranks_per_device <= end_) return *first;
  if (first) give_numbers(*first);
  throw Error(
      Kind::out_of_memory, "register_memory",
      fmt::format("at most {} windows over memory of users are possible with {} ranks a device",
                  (std::min(end_, all_numbers) - 1) / layout_.ranks_per_device,
                  layout_.ranks_per_device),
      "free some (World::free), or use windows of the World's own memory");
}

void GlobalAddresses::give_numbers(u64 first) {
  std::scoped_lock const lock(mutex_);
  std::erase_if(ranges_, [&](auto const& one) {
    return one.first.second - first < layout_.ranks_per_device;
  });
  numbers_.give(first, layout_.ranks_per_device);
}

u64 GlobalAddresses::add(u32 device, u64 number, void* begin, u64 bytes) {
  std::scoped_lock const lock(mutex_);
  ranges_[{device, number}] = {static_cast<char*>(begin), bytes};
  return number * each + skew(begin);
}

}  // namespace meshpost::detail
