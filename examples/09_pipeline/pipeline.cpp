// Data of a device pass through the host in chunks. While the host computes on one chunk, the next
// one travels to the host and the previous one travels back.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <vector>

namespace mp = meshpost;

int main() try {
  constexpr mp::u64 count = 1'000'000;
  auto const device = mp::open_devices("").front();  // a GPU, or a CPU device if there is none
  auto const numbers = device->allocate(mp::Bytes{count * sizeof(double)}, mp::MemoryKind::device);
  std::vector<double> host(count);
  for (mp::u64 i = 0; i < count; ++i) host[i] = static_cast<double>(i);
  device->write(numbers.data(), host.data(), numbers.size());

  // [pipeline]
  mp::PipelineOptions options;
  options.levels = {{device, mp::MemoryKind::pinned}, {device, mp::MemoryKind::device}};
  options.reverse = true;  // the data are at the last level, go to the first, and come back
  options.items = count;
  options.item = mp::Bytes{sizeof(double)};
  options.chunk = 50'000;
  options.segments = [&](mp::ChunkMove const& move) {
    auto* const mine = numbers.as<double>() + move.first;  // source and target of this chunk
    return std::vector<mp::Segment>{move.whole(mine, mine)};
  };
  mp::Compute twice{0};  // at level 0, the host
  twice.start = [](mp::ChunkWork const& work) {
    for (mp::u64 i = 0; i < work.count; ++i)
      static_cast<double*>(work.out)[i] = 2 * static_cast<double const*>(work.in)[i];
  };
  options.compute.push_back(twice);
  mp::Pipeline pipeline(options);
  auto const result = pipeline.run();  // throws mp::Error, which names the stage and the chunk
  // [/pipeline]

  device->read(host.data(), numbers.data(), numbers.size());
  for (mp::u64 i = 0; i < count; ++i)
    if (host[i] != 2 * static_cast<double>(i)) {
      std::printf("number %llu is %g\n", i, host[i]);
      return 1;
    }
  std::printf("%llu chunks of %s passed through %.1f MB of buffers, %.2g GB/s\n",
              pipeline.schedule().shape.chunks, device->name().c_str(),
              static_cast<double>(pipeline.buffer_bytes()) * 1e-6,
              static_cast<double>(result.bytes) / result.seconds * 1e-9);
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
