#pragma once
// Two streams of a World, of one device or of two.
#include <meshpost/meshpost.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "support/worlds.hpp"

namespace meshpost::test {

/// Memory of a device, for sources.
class Buffer {
 public:
  Buffer(Device& device, u64 count, MemoryKind kind = MemoryKind::device)
      : device_(device),
        memory_(device.allocate(Bytes{(count + 1) * sizeof(u32)}, kind)),
        count_(count) {}
  std::span<u32> span() const { return {memory_.as<u32>(), count_}; }
  void write(std::vector<u32> const& values) {
    device_.write(memory_.data(), values.data(), Bytes{values.size() * sizeof(u32)});
  }

 private:
  Device& device_;
  Allocation memory_;
  u64 count_;
};

inline std::vector<u32> numbers(u64 count, u64 seed) {
  std::vector<u32> values(count);
  for (u64 i = 0; i < count; ++i) values[i] = static_cast<u32>(mixed(seed, i));
  return values;
}

enum class Reach { one_device, several_devices, apart };

class TwoStreams : public testing::TestWithParam<Reach> {
 protected:
  static WorldOptions options(std::chrono::milliseconds deadline = std::chrono::seconds(10)) {
    bool const one = GetParam() == Reach::one_device;
    auto wanted = test::options(
        1, test::devices(one ? test::Spread::one_device : test::Spread::several_devices));
    wanted.apart = GetParam() == Reach::apart;
    wanted.deadline = deadline;
    return wanted;
  }
  // The rank of the last device, which has a stream of its own there: the same device if there is
  // one.
  u32 last() const { return world_.size() - 1; }
  Device& device(u32 rank) const { return *world_.devices()[rank]; }

  World world_{options()};
  static constexpr u64 count = 1u << 20;
  Window<u32> box_ = world_.window<u32>(count, Tags{8}, "box");
  StreamEndpoint a_{world_, 0, "a"}, b_{world_, last(), "b"};
};

inline std::string reach_name(testing::TestParamInfo<Reach> const& info) {
  constexpr std::array names{"one_device", "several_devices", "apart"};
  return names[static_cast<u32>(info.param)];
}
inline auto all_reaches() {
  return testing::Values(Reach::one_device, Reach::several_devices, Reach::apart);
}

}  // namespace meshpost::test
