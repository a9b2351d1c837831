#pragma once
#include <meshpost/meshpost.hpp>

#include <vector>

namespace meshpost::test {

/// Makes windows as a World does, but over memory of the user: each rank's part at a place of its
/// own, as other processes don't have it.
class UserMemory {
 public:
  explicit UserMemory(World& world) : world_(world) {}

  template <class T>
  Window<T> window(u64 count, Tags tags, std::string name = {}) {
    u32 const each = world_.ranks_per_device();
    u64 const gap = 1 + world_.process() * 3;
    std::vector<std::span<T>> parts(world_.size());
    for (u32 own = 0; own < world_.devices().size(); ++own) {
      auto& device = *world_.devices()[own];
      Bytes const size{each * (count + gap) * sizeof(T)};
      memory_.push_back(World::allocate(device, size));
      device.fill(memory_.back().data(), 0, size);
      for (u32 local = 0; local < each; ++local) {
        u64 const place = (each - 1 - local) * (count + gap) + gap;
        parts[world_.first_rank() + own * each + local] = {memory_.back().as<T>() + place, count};
      }
    }
    return world_.register_memory(parts, tags, std::move(name));
  }

 private:
  World& world_;
  std::vector<Allocation> memory_;
};

}  // namespace meshpost::test
