// Coherent arrays: the library brings an array up to date where it is read or written, and copies
// only what is needed.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <vector>

namespace mp = meshpost;

constexpr mp::u32 most_devices = 16;

// y = a*x + y. Each device has a y of its own, and reads the same x.
struct Axpy {
  float a;
  mp::u64 size;
  float const* x[most_devices];
  float* y[most_devices];

  MESHPOST_FN void operator()(mp::Rank& self) const {
    auto const d = self.device();
    mp::u64 const first = self.local_id().value * self.threads() + self.thread();
    for (mp::u64 i = first; i < size; i += mp::u64{self.local_size()} * self.threads())
      y[d][i] += a * x[d][i];
  }
};

int main() try {
  mp::WorldOptions options;
  options.alone = true;  // arrays belong to one process
  mp::World world(options);
  auto const& devices = world.devices();
  if (devices.size() > most_devices) {
    std::printf("this example is for at most %u devices\n", most_devices);
    return 0;
  }
  mp::use_devices_for_copies(devices);

  // [arrays]
  mp::u64 const size = 10'000;
  mp::Array<float> x(size, "x");
  for (auto& element : x.write_only()) element = 2;  // at the host; nothing is copied
  std::vector<mp::Array<float>> y;
  for (mp::u32 d = 0; d < devices.size(); ++d)
    y.emplace_back(std::vector<float>(size, static_cast<float>(d)),
                   "y of device " + std::to_string(d));

  for (int step = 0; step < 3; ++step) {
    Axpy axpy{10, size, {}, {}};
    std::vector<mp::ReadAccess<float>> reads;  // live until the kernel has ended
    std::vector<mp::WriteAccess<float>> writes;
    for (mp::u32 d = 0; d < devices.size(); ++d) {
      reads.push_back(x.read(devices[d]));       // copied in the first step only
      writes.push_back(y[d].write(devices[d]));  // likewise; the host's copy becomes invalid
      axpy.x[d] = reads.back().data();
      axpy.y[d] = writes.back().data();
    }
    world.run(axpy);
  }
  // [/arrays]

  for (mp::u32 d = 0; d < devices.size(); ++d)
    for (float const element : y[d].read())  // on GPUs, copied back here
      if (element != static_cast<float>(d) + 60) {
        std::printf("device %u computed %f\n", d, static_cast<double>(element));
        return 1;
      }

  // [exclude]
  auto const writer = x.write();
  try {
    x.read(devices.front());
    return 1;
  } catch (mp::Error const& error) {  // names both places, and the lines of both accesses
    std::printf("as expected: %s\n", error.what());
  }
  // [/exclude]
  std::printf("%s%s", x.explain().c_str(), y.front().explain().c_str());
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
