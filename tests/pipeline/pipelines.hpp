#pragma once
#include <meshpost/pipeline/pipeline.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include "support/bytes.hpp"
#include "support/errors.hpp"
#include "support/worlds.hpp"

namespace meshpost::test {

inline std::vector<std::shared_ptr<Device>> test_devices() { return open_devices(devices()); }

/// Levels of host memory, pinned memory, and the devices' own.
inline std::vector<Level> some_levels(u32 count) {
  auto const all = test_devices();
  std::vector<Level> levels = {{all[0], MemoryKind::pageable}, {all[0], MemoryKind::pinned}};
  for (u32 i = 2; i < count; ++i) levels.push_back({all[(i - 2) % all.size()], MemoryKind::device});
  levels.resize(count);
  return levels;
}

/// Bytes of a level, filled from the host and read back to it.
class Store {
 public:
  Store(Level const& level, u64 size)
      : level_(level),
        memory_(level.device->allocate(Bytes{std::max(u64{1}, size)}, level.memory)) {}
  char* data() const { return memory_.as<char>(); }
  void write(std::vector<u8> const& bytes) const {
    level_.device->write(data(), bytes.data(), Bytes{bytes.size()});
  }
  std::vector<u8> read(u64 size) const {
    std::vector<u8> bytes(size);
    level_.device->read(bytes.data(), data(), Bytes{size});
    return bytes;
  }

 private:
  Level level_;
  Allocation memory_;
};

/// Adds `amount` to each byte in any memory, by way of the host.
inline void add_to_bytes(Device& device, void* out, void const* in, Bytes size, u8 amount) {
  std::vector<u8> bytes(size);
  device.read(bytes.data(), in, size);
  for (auto& byte : bytes) byte = static_cast<u8>(byte + amount);
  device.write(out, bytes.data(), size);
}

/// A pipeline over a contiguous array that adds 1 at each level that computes.
struct ArrayCase {
  PipelineOptions options;
  Store from, to;
  std::vector<u8> input;

  ArrayCase(PipelineOptions wanted, std::mt19937_64& random)
      : options(std::move(wanted)),
        from(home(), options.items * options.item),
        to(end(), options.items * options.item),
        input(random_data(random, options.items * options.item)) {
    from.write(input);
    to.write(random_data(random, input.size()));  // poison
    options.segments = [this](ChunkMove const& move) {
      u64 const offset = move.first * options.item;
      return std::vector<Segment>{move.whole(to.data() + offset, from.data() + offset)};
    };
  }
  Level home() const { return options.reverse ? options.levels.back() : options.levels.front(); }
  Level end() const {
    return options.back != options.reverse ? options.levels.front() : options.levels.back();
  }
  void add_compute(u32 level) {
    options.compute.push_back(
        {level, {}, [this, level](ChunkWork const& work) {
           u64 const offset = work.first * options.item;
           add_to_bytes(*options.levels[level].device, work.out ? work.out : to.data() + offset,
                        work.in ? work.in : from.data() + offset, work.size, 1);
         }});
  }
  bool right(u8 added) const {
    auto expected = input;
    for (auto& byte : expected) byte = static_cast<u8>(byte + added);
    return to.read(expected.size()) == expected;
  }
};

}  // namespace meshpost::test
