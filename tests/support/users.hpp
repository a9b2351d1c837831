#pragma once
#include <meshpost/meshpost.hpp>

#include <exception>
#include <functional>
#include <vector>

namespace meshpost::test {

/// Makes windows as a World does, but over memory of the user. Each rank's part has an address that
/// differs from that in other processes.
class UserMemory {
 public:
  explicit UserMemory(World& world) : world_(world) {}
  /// Collective, unless a test has failed: the memory must outlive its windows.
  ~UserMemory() {
    if (std::uncaught_exceptions() == 0)
      for (auto const& free : windows_) free();
  }
  UserMemory(UserMemory const&) = delete;
  UserMemory& operator=(UserMemory const&) = delete;

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
    auto const made = world_.register_memory(parts, tags, std::move(name));
    windows_.push_back([this, made] {
      try {
        world_.free(made);
      } catch (Error const&) {
        return;  // it was freed before, or another process is gone
      }
    });
    return made;
  }

 private:
  World& world_;
  std::vector<Allocation> memory_;
  std::vector<std::function<void()>> windows_;
};

}  // namespace meshpost::test
