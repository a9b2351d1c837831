// Ranks work on memory that the program has allocated itself, between two pieces of work on its own
// streams.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <memory>
#include <span>
#include <vector>

namespace mp = meshpost;

constexpr mp::u64 half =
    1000;  // numbers of a rank; behind them is room for as many of its neighbour

// [kernel]
struct AddNeighbour {
  mp::Window<int> numbers;

  MESHPOST_FN void operator()(mp::Rank& self) const {
    mp::RankId const next{(self.id() + 1) % self.size()};
    auto const own = numbers.local(self).subspan(0, half),
               received = numbers.local(self).subspan(half);
    self.put_notify(numbers.at(next, half), own, mp::Tag{0});
    self.wait(numbers, mp::Tag{0});
    self.flush(numbers);  // before `own` changes
    self.each(half, [&](mp::u64 i) { own[i] += received[i]; });
  }
};
// [/kernel]

// A device's memory, a host buffer and a stream, as in any program that uses GPUs.
struct Mine {
  mp::u64 ints;
  mp::Allocation memory, buffer;
  std::unique_ptr<mp::Stream> stream;

  Mine(mp::Device& device, mp::u64 count)
      : ints(count),
        memory(mp::World::allocate(device, mp::Bytes{count * sizeof(int)})),
        buffer(device.allocate(mp::Bytes{count * sizeof(int)}, mp::MemoryKind::pinned)),
        stream(device.make_stream()) {}
};

int main() try {
  mp::World world;
  mp::u32 const each = world.ranks_per_device();

  // [streams]
  std::vector<Mine> mine;
  std::vector<std::span<int>> parts(world.size());  // by rank; other processes give theirs
  mp::u32 rank = world.first_rank();
  mp::Launch launch;
  for (auto const& device : world.devices()) {
    auto& one = mine.emplace_back(*device, each * 2 * half);
    for (mp::u32 local = 0; local < each; ++local)
      parts[rank++] = {one.memory.as<int>() + local * 2 * half, 2 * half};
    for (mp::u64 i = 0; i < one.ints; ++i) one.buffer.as<int>()[i] = static_cast<int>(rank * i);
    one.stream->copy(one.memory.data(), one.buffer.data(), one.memory.size());  // returns at once
    launch.streams.push_back(one.stream.get());
  }
  auto const numbers = world.register_memory<int>(parts, mp::Tags{1}, "numbers");
  auto run =
      world.launch(AddNeighbour{numbers}, launch);  // after the copies above, before those below
  for (auto const& one : mine)
    one.stream->copy(one.buffer.data(), one.memory.data(), one.memory.size());
  for (auto const& one : mine) one.stream->synchronize();
  run.wait();           // throws if a rank failed
  world.free(numbers);  // before the memory is freed
  // [/streams]

  auto const initial = [&](mp::u64 rank, mp::u64 i) {
    mp::u64 const device = rank / each, local = rank % each;
    return static_cast<int>((device + 1) * each * (local * 2 * half + i));
  };
  for (mp::u64 own = 0; own < mine.size() * each; ++own)
    for (mp::u64 i = 0; i < half; ++i) {
      mp::u64 const me = world.first_rank() + own;
      int const found = mine[own / each].buffer.as<int>()[own % each * 2 * half + i];
      int const expected = initial(me, i) + initial((me + world.size() - 1) % world.size(), i);
      if (found != expected) {
        std::printf("number %llu of rank %llu is %d, not %d\n", i, me, found, expected);
        return 1;
      }
    }
  if (world.process() == 0)
    std::printf("%u ranks on %u devices added their neighbours' numbers\n", world.size(),
                world.device_count());
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
